import { describe, expect, it } from 'vitest'

import { filesOfFolder, packTar } from './tar'

function text(bytes: Uint8Array, at: number, length: number): string {
  return new TextDecoder().decode(bytes.slice(at, at + length)).replace(/\0.*$/s, '')
}

async function read(blob: Blob): Promise<Uint8Array> {
  return new Uint8Array(await new Response(blob).arrayBuffer())
}

function chosen(path: string): File {
  const file = new File(['x'], path.split('/').at(-1) ?? '')
  Object.defineProperty(file, 'webkitRelativePath', { value: path })
  return file
}

describe('a folder as an archive', () => {
  it('has a header with name, size and checksum before each file, and ends with two empty blocks', async () => {
    const bytes = await read(packTar([{ path: 'workflow.py', content: new Blob(['pass\n']) }]))

    expect(bytes.length).toBe(512 + 512 + 1024)
    expect(text(bytes, 0, 100)).toBe('workflow.py')
    expect(Number.parseInt(text(bytes, 124, 12), 8)).toBe(5)
    expect(text(bytes, 257, 6)).toBe('ustar')
    const head = bytes.slice(0, 512)
    head.fill(32, 148, 156)
    expect(Number.parseInt(text(bytes, 148, 7), 8)).toBe(head.reduce((total, byte) => total + byte, 0))
    expect(text(bytes, 512, 5)).toBe('pass\n')
    expect(bytes.slice(1024).every((byte) => byte === 0)).toBe(true)
  })

  it('splits long paths at a slash, and refuses what fits neither way', async () => {
    const folder = 'f'.repeat(90)
    const bytes = await read(packTar([{ path: `${folder}/${'n'.repeat(60)}`, content: new Blob([]) }]))

    expect(text(bytes, 345, 155)).toBe(folder)
    expect(text(bytes, 0, 100)).toBe('n'.repeat(60))
    expect(() => packTar([{ path: 'x'.repeat(101), content: new Blob([]) }])).toThrow(RangeError)
  })

  it('leaves the name of the chosen folder out, and what is no part of a package', () => {
    const files = ['agent/workflow.py', 'agent/lib/a.py', 'agent/__pycache__/a.pyc', 'agent/.git/config', 'agent/b.pyc']

    expect(filesOfFolder(files.map(chosen)).map(({ path }) => path)).toEqual(['workflow.py', 'lib/a.py'])
  })
})
