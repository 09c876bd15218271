/**
 * Sentences that the server writes in English and that have no code: states of components, and messages of versions.
 * Each pattern is one of the server's sentences; what it leaves open (names, numbers) comes over as it is.
 */
const PATTERNS: readonly (readonly [RegExp, string])[] = [
  [/^The database does not answer\.$/, '数据库没有响应。'],
  [/^(.+) answers\.$/, '$1 有响应。'],
  [/^(Ray \S+) answers\. (\d+) nodes? with (\d+) GPUs\.$/, '$1 有响应。$2 个节点，$3 个 GPU。'],
  [/^(Ray \S+) answers\. (\d+) nodes? with (\d+) GPUs\. TRELLIS_SLOTS is (\d+): .+$/, '$1 有响应。$2 个节点，$3 个 GPU。TRELLIS_SLOTS 为 $4：会接纳无法放置的任务。'],
  [/^(Ray \S+) answers\. It does not name its nodes\.$/, '$1 有响应，但没有列出节点。'],
  [/^Ray answers with status (\d+): (.+)\.$/, 'Ray 返回状态 $1：$2。'],
  [/^Ray's Jobs API does not answer; no job can start\.$/, 'Ray 的任务接口没有响应，任务无法启动。'],
  [/^Something else than Ray answers at the address of Ray\.$/, 'Ray 的地址上响应的不是 Ray。'],
  [/^Redis does not answer; jobs stay queued until it is back\.$/, 'Redis 没有响应，恢复之前任务会一直排队。'],
  [/^Redis does not answer, so workers cannot be counted\.$/, 'Redis 没有响应，无法统计工作进程。'],
  [/^Redis does not answer, so beat cannot be seen\.$/, 'Redis 没有响应，无法查看调度进程。'],
  [/^Without Redis there are no workers\.$/, '没有 Redis，也就没有工作进程。'],
  [/^Without Redis there is no beat\.$/, '没有 Redis，也就没有调度进程。'],
  [/^No worker has reported for ([\d.]+) s; queued jobs do not start\.$/, '已有 $1 秒没有工作进程报告，排队的任务不会启动。'],
  [/^(\d+) workers? (?:is|are) alive\.$/, '$1 个工作进程在运行。'],
  [/^Beat has not reported for ([\d.]+) s; finished jobs are not settled\.$/, '调度进程已有 $1 秒没有报告，结束的任务不会被结算。'],
  [/^Beat is alive\.$/, '调度进程在运行。'],
  [/^([\d.]+ GiB) are free\.$/, '可用空间 $1。'],
  [/^([\d.]+ GiB) are free\. Launching needs ([\d.]+ GiB)\.$/, '可用空间 $1，启动任务需要 $2。'],
  [/^The data root cannot be read: (.+)\.$/, '无法读取数据目录：$1。'],
  [/^The data root cannot be written\.$/, '无法写入数据目录。'],
  [/^No supervisor of the platform watches its services\.$/, '没有守护进程看护平台的服务。'],
  [/^What the supervisor tells cannot be read\.$/, '无法读取守护进程的状态。'],
  [/^The supervisor is gone: .+$/, '守护进程已退出：停止的服务需要运行 ./init.sh 才会恢复。'],
  [/^Given up after repeated deaths: (.+)\. See its log, and call \.\/init\.sh\.$/, '反复退出后已放弃：$1。请查看其日志并运行 ./init.sh。'],
  [/^Started again in the last ten minutes: (.+)\.$/, '最近十分钟内重新启动过：$1。'],
  [/^(\d+) services are watched\.$/, '正在看护 $1 个服务。'],
  [/^The measurement failed; the API's log says why\.$/, '测量失败，原因见 API 日志。'],
  [/^(TRELLIS_\w+) is not set\.$/, '未设置 $1。'],
  [/^Not measured yet\.$/, '尚未测量。'],
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
