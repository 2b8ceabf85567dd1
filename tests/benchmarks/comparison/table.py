import statistics
def table(result):
    out=[]
    for cell in result["works"].get("vectors",[]):
        out.append(f"{cell['model']} {cell['texts']} tokens {cell['num_tokens']} longest {cell['longest']}")
        for l,s in cell["seconds"].items():
            out.append(f"  {l:45}{cell['num_texts']/statistics.median(s):9.1f} texts/s {cell['equality'][l]} {cell['settings'][l]}")
        out.append(str(cell["left_out"]))
    return "\n".join(out)+"\n"
