"""Random sets of added tokens with random flags, and texts that hold them."""

CONTENTS = (
    *(
        "<e>",
        "</e>",
        "[E1]",
        "[SEP",
        "@user",
        "covid",
        "COVID",
        "covid-19",
        "co",
        "Vid",
        "id",
        "e",
        "E",
        "é",
        "É",
        "ß",
        "İ",
    ),
    *(
        "中国",
        "国",
        "中",
        "東京",
        "a b",
        "b a",
        "a  b",
        "new york",
        "##ing",
        "ing",
        ".",
        "...",
        "-",
        "<",
        "[",
        "_x_",
        "1",
        "19",
    ),
    *(
        "Σ",
        "ς",
        "ας",
        "\u0301",
        "e\u0301",
        "o\u0301x",
        "\u200d",
        "가",
        "각",
        "ㄱ",
        "\u1100",
        "😀",
        "ก",
        "กก",
        "ﬁ",
        "Ǆ",
        "\u1b4e",
        "a\u1b4e",
    ),
    *(
        "\n",
        "\t",
        "\xa0",
        "x\u3000",
        "\u166d",
        "§",
        "a§b",
        "\u2028",
        "\ufffdx",
        "[MASK]",
        "[SEP]",
        "the",
        "un",
        "affable",
    ),
)
LEADING_SPACE = (" foo", "  ", " ", " a")


def random_tokens(generator):
    """Arguments of some `AddedToken`s."""
    number = generator.choice((1, 1, 2, 3, 5, 9))
    contents = generator.sample(CONTENTS, number)
    flags = ("single_word", "lstrip", "rstrip", "normalized", "special")
    share = generator.choice((0.1, 0.3, 0.6))
    tokens = [{"content": content, **{flag: generator.random() < share for flag in flags}} for content in contents]
    if generator.random() < 0.2 and not any(token["rstrip"] for token in tokens):
        tokens.append({"content": generator.choice(LEADING_SPACE), "normalized": generator.random() < 0.5})
    return tokens


def random_texts(generator, tokens, hard, number):
    """Texts of the tokens, parts of them, and parts of hard texts."""
    contents = [token["content"] for token in tokens]
    return ["".join(_part(generator, contents, hard) for _ in range(generator.randrange(9))) for _ in range(number)]


def _part(generator, contents, hard):
    draw = generator.random()
    content = generator.choice(contents)
    if draw < 0.3:
        return content
    if draw < 0.4:
        return content.upper() if draw < 0.35 else content.lower()
    if draw < 0.45:
        return content[: generator.randrange(len(content) + 1)]
    if draw < 0.65:
        return generator.choice((" ", "  ", "\n", "\xa0", "\u3000", "\u2003 ", "\x0b", "\x85", "\x00"))
    if draw < 0.8:
        return generator.choice(
            (
                "a",
                "x",
                "Z",
                "é",
                "e\u0301",
                "\u0301",
                "_",
                "1",
                "中",
                "国",
                ".",
                "-",
                "·",
                "ก",
                "\u200d",
                "\u0903",
                "Ⓐ",
                "😀",
                "٣",
            )
        )
    text = generator.choice(hard)
    first = generator.randrange(len(text) + 1)
    return text[first : first + generator.randrange(12)]
