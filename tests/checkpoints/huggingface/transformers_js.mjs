// Asks the models of a folder, one for each task of transformers.js, and prints what they answer as JSON.
//
//     node transformers_js.mjs FOLDER
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";
import path from "node:path";

const require = createRequire(path.join(process.cwd(), "index.js"));
const { pipeline, env } = await import(pathToFileURL(require.resolve("@huggingface/transformers")));
env.allowRemoteModels = false;
env.localModelPath = process.argv[2] + "/";
const texts = ["A cat sleeps on the mat.", "Paris is lovely in May, said Anna."];
const found = {};
for (const dtype of ["fp32", "q8"]) {
  const open = (task) => pipeline(task, task, { dtype });
  const vectors = await (await open("feature-extraction"))(texts, { pooling: "mean", normalize: true });
  found[dtype] = {
    "feature-extraction": vectors.tolist(),
    "text-classification": await (await open("text-classification"))(texts, { top_k: null }),
    "token-classification": await (await open("token-classification"))(texts[1]),
    "question-answering": await (await open("question-answering"))("Who sleeps?", texts[0]),
    "fill-mask": await (await open("fill-mask"))("A cat [MASK] on the mat."),
  };
}
console.log(JSON.stringify(found));
