/**
 * Sentences that the server writes in English and that have no code: states of components, messages of versions, and
 * how runs and sweeps ended.
 * Each pattern is one of the server's sentences; what it leaves open (names, numbers) comes over as it is.
 */
const PATTERNS: readonly (readonly [RegExp, string])[] = [
  [/^Not responding\.$/, '没有响应。'],
  [/^Connected\.$/, '已连接。'],
  [/^Running\.$/, '运行中。'],
  [/^Connected \((.+)\)\.$/, '已连接（$1）。'],
  [/^Connected \((Ray \S+)\)\. (\d+) nodes? with (\d+) GPUs\.$/, '已连接（$1）。$2 个节点，$3 个 GPU。'],
  [
    /^Connected \((Ray \S+)\)\. (\d+) nodes? with (\d+) GPUs\. TRELLIS_SLOTS is (\d+), .+$/,
    '已连接（$1）。$2 个节点，$3 个 GPU。TRELLIS_SLOTS 为 $4：会接纳无法放置的任务。',
  ],
  [/^Connected \((Ray \S+)\)\. Its nodes are unknown\.$/, '已连接（$1），但没有列出节点。'],
  [/^Ray returned status (\d+): (.+)\.$/, 'Ray 返回状态 $1：$2。'],
  [/^Jobs API not responding; no job can start\.$/, 'Ray 的任务接口没有响应，任务无法启动。'],
  [/^The server at this address is not Ray\.$/, 'Ray 的地址上响应的不是 Ray。'],
  [/^Not responding\. Jobs stay queued until it is back\.$/, '没有响应，恢复之前任务会一直排队。'],
  [/^Unknown: Redis is not responding\.$/, '未知：Redis 没有响应。'],
  [/^Unavailable without Redis\.$/, '没有 Redis 时不可用。'],
  [
    /^No worker heartbeat for ([\d.]+) s; queued jobs don't start\.$/,
    '已有 $1 秒没有工作进程报告，排队的任务不会启动。',
  ],
  [/^(\d+) workers? running\.$/, '$1 个工作进程在运行。'],
  [
    /^No heartbeat for ([\d.]+) s; finished jobs are not recorded\.$/,
    '调度进程已有 $1 秒没有报告，结束的任务不会被结算。',
  ],
  [/^([\d.]+ GiB) free\.$/, '可用空间 $1。'],
  [/^([\d.]+ GiB) free\. Launching a job needs ([\d.]+ GiB)\.$/, '可用空间 $1，启动任务需要 $2。'],
  [/^Can't read the data root: (.+)\.$/, '无法读取数据目录：$1。'],
  [/^The data root is not writable\.$/, '无法写入数据目录。'],
  [/^Not running\.$/, '未运行。'],
  [/^Can't read the supervisor's status\.$/, '无法读取守护进程的状态。'],
  [/^Not running: services that die .+$/, '守护进程已退出：停止的服务需要运行 ./init.sh 才会恢复。'],
  [
    /^Gave up after repeated crashes: (.+)\. See its log and run \.\/init\.sh\.$/,
    '反复退出后已放弃：$1。请查看其日志并运行 ./init.sh。',
  ],
  [/^Restarted in the last ten minutes: (.+)\.$/, '最近十分钟内重新启动过：$1。'],
  [/^Watching (\d+) services\.$/, '正在看护 $1 个服务。'],
  [/^Check failed; see the API log\.$/, '测量失败，原因见 API 日志。'],
  [/^(TRELLIS_\w+) is not set\.$/, '未设置 $1。'],
  [/^Not checked yet\.$/, '尚未测量。'],
  [/^The first (\d+) runs failed; the last one: (.+)$/s, '前 $1 次运行均失败，最后一次：$2'],
  [/^A run has finished without '(.+)'\. It reported: (.+)\.$/, '有运行结束时没有报告 $1，它报告了：$2。'],
  [/^A run has finished without '(.+)'\. It reported: nothing\.$/, '有运行结束时没有报告 $1，也没有报告任何指标。'],
  [/^The budget of ([\d.e+]+) hours is used up; no more runs start\.$/, '$1 小时的预算已用完，不再启动新的运行。'],
  [
    /^The budget of ([\d.e+]+) slot-hours is used up; no more runs start\.$/,
    '$1 槽位小时的预算已用完，不再启动新的运行。',
  ],
  [/^No run has finished with a value of the metric\.$/, '没有运行在结束时给出目标指标的值。'],
  [
    /^Stopped early by the sweep's rule (\w+): at step (\d+), (.+) was (\S+), worse than enough of the (\d+) other runs measured there\.$/,
    '被扫描的提前停止规则 $1 停止：第 $2 步的 $3 为 $4，不如该步上其余 $5 次运行中的足够多次。',
  ],
  [
    /^A run could not be started or finished; see the workers' log for the reason\.$/,
    '有运行无法启动或结束，原因见 Worker 的日志。',
  ],
  [/^The Ray cluster has no record of the run: .+$/, 'Ray 集群中没有这次运行的记录：集群重启过，或机器已丢失。'],
  [/^The run stopped reporting, and the Ray cluster cannot be reached\.$/, '运行不再报告，并且无法连接 Ray 集群。'],
  [
    /^The run's supervisor process hung for more than a minute and was killed: .+$/,
    '运行的监督进程停滞超过一分钟，已被终止：它被暂停，或卡在没有响应的文件系统上。',
  ],
  [/^Import (.+)$/, '导入 $1'],
  [/^Pipeline (.+)$/, '流水线 $1'],
]

/** A sentence of the server in Chinese; itself where it is none of those known. */
export function toChinese(sentence: string): string {
  const told = /^(The first \d+ runs failed; the last one: )(.+)$/s.exec(sentence)
  // The end of this one is a sentence of its own.
  if (told !== null) return sayKnown(`${told[1] ?? ''}${sayKnown(told[2] ?? '')}`)
  return sayKnown(sentence)
}

function sayKnown(sentence: string): string {
  // Later patterns say more of the same sentence.
  for (const [pattern, text] of [...PATTERNS].reverse()) {
    if (pattern.test(sentence)) return sentence.replace(pattern, text)
  }
  return sentence
}
