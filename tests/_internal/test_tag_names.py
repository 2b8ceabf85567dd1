import pytest

from keras_bert_layers._internal.tag_scheme import parse_tags

# Names, the scheme that they are found to be, and what each says: a kind and a label.
CASES = {
    "bio": ("O B-per I-per B-creative-work I-creative-work", "bio", "O Bper Iper Bcreative-work Icreative-work"),
    "other order": ("I-a O B-a", "bio", "Ia O Ba"),
    "one label without I": ("O B-a B-b I-b", "bio", "O Ba Bb Ib"),
    "no B for a label": ("O I-a B-b I-b", "iob1", "O Ia Bb Ib"),
    "IO": ("O I-a I-b", "io", "O Ia Ib"),
    "plain": ("O PER LOC", "io", "O IPER ILOC"),
    "plain with a dash": ("O creative-work", "io", "O Icreative-work"),
    "BIOES": ("O B-a I-a E-a S-a", "bioes", "O Ba Ia Ea Sa"),
    "BIOES, a label of single words": ("O B-a I-a E-a S-a S-b", "bioes", "O Ba Ia Ea Sa Sb"),
    "BMES": ("B-a M-a E-a S-a O", "bioes", "Ba Ia Ea Sa O"),
    "IOE": ("O I-a E-a", "bioes", "O Ia Ea"),
    "BILOU": ("O B-a I-a L-a U-a", "bilou", "O Ba Ia Ea Sa"),
    "suffixes": ("O PER-B PER-I ORG-B ORG-I", "bio", "O BPER IPER BORG IORG"),
    "suffixes of BIOES": ("a_B a_I a_E a_S O", "bioes", "Ba Ia Ea Sa O"),
    "underscores": ("O B_PER I_PER", "bio", "O BPER IPER"),
    "lower case": ("o b-per i-per", "bio", "O Bper Iper"),
    "a small o alone": ("o per loc", "io", "O Iper Iloc"),
    "letters": ("B I O", "bio", "Bentity Ientity O"),
    "segmentation": ("B M E S", "bioes", "Bentity Ientity Eentity Sentity"),
    "special tokens": ("[PAD] O B-a I-a X [CLS] [SEP]", "bio", "O O Ba Ia O O O"),
    "a label PAD": ("PAD O B-a I-a", "bio", "O O Ba Ia"),
    "X among labels": ("O X Y", "io", "O IX IY"),
    "a plain label too": ("O B-a I-a MISC", "bio", "O Ba Ia IMISC"),
    "no O": ("B-a I-a", "bio", "Ba Ia"),
    "label_n": ("LABEL_0 LABEL_1 LABEL_2", "labels", "WLABEL_0 WLABEL_1 WLABEL_2"),
    "part of speech": ("NOUN VERB X PUNCT", "labels", "WNOUN WVERB WX WPUNCT"),
    "part of speech, letters": ("a b d e i m n o s u", "labels", "Wa Wb Wd We Wi Wm Wn Wo Ws Wu"),
    "labels like tags": ("O E-mail phone street", "io", "O IE-mail Iphone Istreet"),
    "vitamins": ("VITAMIN-B IRON ZINC", "labels", "WVITAMIN-B WIRON WZINC"),
}


@pytest.mark.parametrize("case", CASES)
def test_scheme_is_found(case):
    names, scheme, meanings = CASES[case]
    found, tags = parse_tags("Owner", names.split(), None)
    assert (found, " ".join(kind + label if kind else "O" for kind, label in tags)) == (scheme, meanings)


@pytest.mark.parametrize(
    ("names", "scheme", "meanings"),
    [
        ("O B-a I-a", "iob1", "O Ba Ia"),
        ("O B-a I-a", "io", "O Ia Ia"),
        ("O B-a I-a", "labels", "WO WB-a WI-a"),
        ("NOUN VERB", "io", "INOUN IVERB"),
        ("O I-95 U-boat", "bilou", "O I95 Sboat"),
        ("O B-a I-a S-bahn", "bio", "O Ba Ia IS-bahn"),
    ],
)
def test_scheme_is_given(names, scheme, meanings):
    found, tags = parse_tags("Owner", names.split(), scheme)
    assert (found, " ".join(kind + label if kind else "O" for kind, label in tags)) == (scheme, meanings)


def test_unknown_scheme():
    with pytest.raises(ValueError, match="`Owner`: `scheme` must be one of .*'bio', 'iob1', .* Received: scheme='iob'"):
        parse_tags("Owner", ["O"], "iob")
