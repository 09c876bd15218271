export default {
  title: '登录',
  lead: '启动并观察语言模型的训练。',
  token: '管理员令牌',
  tokenHint: '保存在平台数据目录的 {file} 文件中。',
  submit: '登录',
  withLink: '正在用链接登录……',
  expired: '登录已失效。重新登录后会回到刚才的页面。',
  linkFailed: '此登录链接已被使用或已过期。',
  linkFailedHint: '在运行 Trellis 的机器上生成新的链接，或在下方粘贴令牌：',
  linkTitle: '更简单：登录链接',
  linkHint: 'Trellis 启动时会打印一个只能使用一次的链接。需要新链接时，在其目录中运行：',
  wrongToken: '这不是管理员令牌。',
}
