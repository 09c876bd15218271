/** Writes src/api/schema.d.ts from openapi.json; with --check, fails when the file on disk is stale. */
import { readFile, writeFile } from 'node:fs/promises'

import openapiTS, { astToString, COMMENT_HEADER } from 'openapi-typescript'

const source = new URL('../openapi.json', import.meta.url)
const target = new URL('../src/api/schema.d.ts', import.meta.url)

const generated = COMMENT_HEADER + astToString(await openapiTS(source))

if (process.argv.includes('--check')) {
  const onDisk = await readFile(target, 'utf8').catch(() => '')
  if (onDisk !== generated) {
    console.error('src/api/schema.d.ts is stale: run `npm run generate` and commit the result.')
    process.exit(1)
  }
} else {
  await writeFile(target, generated)
}
