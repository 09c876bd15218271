/**
 * Sentences that the server writes in English and that have no code: states of components, and messages of versions.
 * Each pattern is one of the server's sentences; what it leaves open (names, numbers) comes over as it is.
 */
const PATTERNS: readonly (readonly [RegExp, string])[] = [
  [/^Not responding\.$/, '没有响应。'],
  [/^Connected\.$/, '已连接。'],
  [/^Running\.$/, '运行中。'],
  [/^Connected \((.+)\)\.$/, '已连接（$1）。'],
  [/^Connected \((Ray \S+)\)\. (\d+) nodes? with (\d+) GPUs\.$/, '已连接（$1）。$2 个节点，$3 个 GPU。'],
  [/^Connected \((Ray \S+)\)\. (\d+) nodes? with (\d+) GPUs\. TRELLIS_SLOTS is (\d+), .+$/, '已连接（$1）。$2 个节点，$3 个 GPU。TRELLIS_SLOTS 为 $4：会接纳无法放置的任务。'],
  [/^Connected \((Ray \S+)\)\. Its nodes are unknown\.$/, '已连接（$1），但没有列出节点。'],
  [/^Ray returned status (\d+): (.+)\.$/, 'Ray 返回状态 $1：$2。'],
  [/^Jobs API not responding; no job can start\.$/, 'Ray 的任务接口没有响应，任务无法启动。'],
  [/^The server at this address is not Ray\.$/, 'Ray 的地址上响应的不是 Ray。'],
  [/^Not responding\. Jobs stay queued until it is back\.$/, '没有响应，恢复之前任务会一直排队。'],
  [/^Unknown: Redis is not responding\.$/, '未知：Redis 没有响应。'],
  [/^Unavailable without Redis\.$/, '没有 Redis 时不可用。'],
  [/^No worker heartbeat for ([\d.]+) s; queued jobs don't start\.$/, '已有 $1 秒没有工作进程报告，排队的任务不会启动。'],
  [/^(\d+) workers? running\.$/, '$1 个工作进程在运行。'],
  [/^No heartbeat for ([\d.]+) s; finished jobs are not recorded\.$/, '调度进程已有 $1 秒没有报告，结束的任务不会被结算。'],
  [/^([\d.]+ GiB) free\.$/, '可用空间 $1。'],
  [/^([\d.]+ GiB) free\. Launching a job needs ([\d.]+ GiB)\.$/, '可用空间 $1，启动任务需要 $2。'],
  [/^Can't read the data root: (.+)\.$/, '无法读取数据目录：$1。'],
  [/^The data root is not writable\.$/, '无法写入数据目录。'],
  [/^Not running\.$/, '未运行。'],
  [/^Can't read the supervisor's status\.$/, '无法读取守护进程的状态。'],
  [/^Not running: services that die .+$/, '守护进程已退出：停止的服务需要运行 ./init.sh 才会恢复。'],
  [/^Gave up after repeated crashes: (.+)\. See its log and run \.\/init\.sh\.$/, '反复退出后已放弃：$1。请查看其日志并运行 ./init.sh。'],
  [/^Restarted in the last ten minutes: (.+)\.$/, '最近十分钟内重新启动过：$1。'],
  [/^Watching (\d+) services\.$/, '正在看护 $1 个服务。'],
  [/^Check failed; see the API log\.$/, '测量失败，原因见 API 日志。'],
  [/^(TRELLIS_\w+) is not set\.$/, '未设置 $1。'],
  [/^Not checked yet\.$/, '尚未测量。'],
  [/^Import (.+)$/, '导入 $1'],
  [/^Pipeline (.+)$/, '流水线 $1'],
]

/** A sentence of the server in Chinese; itself where it is none of those known. */
export function toChinese(sentence: string): string {
  // Later patterns say more of the same sentence.
  for (const [pattern, text] of [...PATTERNS].reverse()) {
    if (pattern.test(sentence)) return sentence.replace(pattern, text)
  }
  return sentence
}
