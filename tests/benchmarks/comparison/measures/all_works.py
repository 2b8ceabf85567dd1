from comparison.measures.vectors import measure_vectors
WORKS = {"vectors": measure_vectors}
