/** Leaves a Brotli and a gzip form beside every text file of the build; the API serves what a browser takes. */
import { readdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { brotliCompress, constants, gzip } from 'node:zlib'

import type { Plugin } from 'vite'

const TEXTS = /\.(?:js|css|html|svg|json|txt)$/
/** Below it a packet is sent anyway. */
const SMALLEST_BYTES = 1024

const FORMS = [
  [
    '.br',
    (bytes: Buffer) =>
      promisify(brotliCompress)(bytes, {
        params: {
          [constants.BROTLI_PARAM_QUALITY]: constants.BROTLI_MAX_QUALITY,
          [constants.BROTLI_PARAM_SIZE_HINT]: bytes.length,
        },
      }),
  ],
  ['.gz', (bytes: Buffer) => promisify(gzip)(bytes, { level: constants.Z_BEST_COMPRESSION })],
] as const

export function precompress(): Plugin {
  let folder = ''
  return {
    name: 'trellis-precompress',
    apply: 'build',
    configResolved(config) {
      folder = config.build.outDir
    },
    async closeBundle() {
      const files = await readdir(folder, { recursive: true })
      await Promise.all(files.filter((name) => TEXTS.test(name)).map((name) => compressFile(join(folder, name))))
    },
  }
}

async function compressFile(path: string): Promise<void> {
  const bytes = await readFile(path)
  if (bytes.length < SMALLEST_BYTES) return
  for (const [suffix, compress] of FORMS) {
    const packed = await compress(bytes)
    if (packed.length < bytes.length) await writeFile(path + suffix, packed)
  }
}
