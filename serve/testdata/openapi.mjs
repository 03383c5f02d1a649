// Holds a document to OpenAPI's schema, and one of which something is gone.
import { readFileSync } from "node:fs";
import { pathToFileURL } from "node:url";
const { Validator } = await import(pathToFileURL(process.env.PAWL_NPM + "/node_modules/@seriousme/openapi-schema-validator/index.js"));

const doc = JSON.parse(readFileSync(process.argv[2], "utf8"));
const print = (name, value) => console.log(JSON.stringify({ name, value }));
const validator = new Validator();
const checked = await validator.validate(structuredClone(doc));
validator.resolveRefs(); // throws when one leads nowhere
print("document", { valid: checked.valid, errors: checked.errors, version: validator.version });
delete doc.info.title;
print("broken", { valid: (await new Validator().validate(doc)).valid });
