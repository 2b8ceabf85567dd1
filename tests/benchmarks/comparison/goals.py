def judge(works): return []
