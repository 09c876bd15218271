/** A folder as a tar archive (POSIX ustar): what the browser has no other format for. */

const BLOCK = 512
/** Left out: caches, version control and virtual environments are no part of a package. */
const IGNORED = new Set(['__pycache__', '.git', '.venv', '.mypy_cache', '.pytest_cache', '.ruff_cache', 'node_modules'])

export interface FolderFile {
  /** Relative to the folder. */
  path: string
  content: Blob
}

/** Files that an input with `webkitdirectory` gives, by their paths within the chosen folder. */
export function filesOfFolder(files: readonly File[]): FolderFile[] {
  return files
    .map((file) => ({ path: file.webkitRelativePath.split('/').slice(1).join('/'), content: file }))
    .filter(({ path }) => path !== '' && !path.endsWith('.pyc') && !path.split('/').some((part) => IGNORED.has(part)))
}

/** The archive. Paths are at most 255 bytes, as the format has it. */
export function packTar(files: readonly FolderFile[]): Blob {
  const parts: BlobPart[] = []
  for (const { path, content } of files) {
    parts.push(header(path, content.size), content, new Uint8Array((BLOCK - (content.size % BLOCK)) % BLOCK))
  }
  return new Blob([...parts, new Uint8Array(2 * BLOCK)], { type: 'application/x-tar' })
}

function header(path: string, size: number): Uint8Array<ArrayBuffer> {
  const bytes = new Uint8Array(BLOCK)
  const write = (at: number, text: string) => {
    bytes.set(new TextEncoder().encode(text), at)
  }
  const octal = (value: number, digits: number) => `${value.toString(8).padStart(digits, '0')}\0`
  const [prefix, name] = splitPath(path)
  write(0, name)
  write(100, octal(0o644, 7))
  write(108, octal(0, 7))
  write(116, octal(0, 7))
  write(124, octal(size, 11))
  write(136, octal(0, 11))
  // The sum is taken with spaces in its place.
  write(148, ' '.repeat(8))
  write(156, '0')
  write(257, 'ustar\0')
  write(263, '00')
  write(345, prefix)
  const sum = bytes.reduce((total, byte) => total + byte, 0)
  write(148, `${sum.toString(8).padStart(6, '0')}\0 `)
  return bytes
}

/** Folder and name, as the two fields of the format hold them: 155 and 100 bytes. */
function splitPath(path: string): [string, string] {
  const length = (text: string) => new TextEncoder().encode(text).length
  if (length(path) <= 100) return ['', path]
  for (let at = path.indexOf('/'); at !== -1; at = path.indexOf('/', at + 1)) {
    const [prefix, name] = [path.slice(0, at), path.slice(at + 1)]
    if (length(prefix) <= 155 && length(name) <= 100) return [prefix, name]
  }
  throw new RangeError(path)
}
