/** Lets the browser save what the API sends; the server names the file. */
export function fetchFile(address: string): void {
  const link = document.createElement('a')
  link.href = address
  link.download = ''
  link.click()
}
