/** Hands something to the browser as a file to save. */

/** Names of metrics have slashes, which no file name can have. */
export function saveBlob(name: string, content: Blob): void {
  const url = URL.createObjectURL(content)
  const link = document.createElement('a')
  link.href = url
  link.download = name.replaceAll('/', '-')
  link.click()
  // The download has its own hold on the data by the next turn.
  setTimeout(() => {
    URL.revokeObjectURL(url)
  }, 0)
}

export function saveFile(name: string, text: string, type: string): void {
  saveBlob(name, new Blob([text], { type: `${type};charset=utf-8` }))
}
