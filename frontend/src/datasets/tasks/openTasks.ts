/** Which of a dataset's tasks a person should see without looking for them. */
import type { DataTask } from '../types'
import { isOver } from './useDataTask'

/** What waits or runs on it, and the newest import where that failed: what came after it made that of no account. */
export function openTasksOf(newestFirst: readonly DataTask[], dataset: string): DataTask[] {
  const mine = newestFirst.filter(
    (task) => task.dataset === dataset && task.purpose !== 'quality' && task.purpose !== 'duplicates',
  )
  const newest = mine[0]
  return mine.filter(
    (task) => !isOver(task) || (task === newest && task.kind === 'import' && task.state !== 'succeeded'),
  )
}
