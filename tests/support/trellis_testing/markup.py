"""Markup that would act if a page took it for its own, and a look at whether any of it does."""

from playwright.sync_api import Page

_ACT = "window.acted=1"
#: For names, which have no room for more.
MARKED_NAME = f'"><img src=x onerror={_ACT}><svg onload={_ACT}>'
#: For texts, also those that pages show as Markdown.
MARKED_TEXT = "\n\n".join(
    (
        f"<img src=x onerror={_ACT}>",
        f"<script>{_ACT}</script>",
        f"</script></textarea></style><script>{_ACT}</script>",
        f"<svg onload={_ACT}><script>{_ACT}</script><a xlink:href='javascript:{_ACT}'>svg</a></svg>",
        f"[a link](javascript:{_ACT}) [data](data:text/html,<script>{_ACT}</script>) <javascript:{_ACT}>",
        f"[upper](JaVaScRiPt:{_ACT}) [entity](&#106;avascript:{_ACT}) [tab](java\tscript:{_ACT})",
        f'![an image](javascript:{_ACT}) ![closed](x"onerror="{_ACT})',
        f"<a href='javascript:{_ACT}'>a</a> <iframe srcdoc='<script>parent.{_ACT}</script>'></iframe>",
        f"<details open ontoggle={_ACT}>x</details>",
        f"<form action='javascript:{_ACT}'><button>b</button></form>",
        f"```html\n<script>{_ACT}</script>\n```",
        f"{{{{ constructor.constructor('{_ACT}')() }}}}",
        f"| a |\n|---|\n| <img src=x onerror={_ACT}> |",
        f"$<img src=x onerror={_ACT}>$ $$\\href{{javascript:{_ACT}}}{{x}}$$",
    )
)

_LOOK = r"""() => {
  const found = 'acted' in window ? ['it has acted'] : []
  const isAddress = (name) => ['href', 'src', 'action', 'formaction', 'xlink:href', 'data'].includes(name)
  for (const element of document.querySelectorAll('*'))
    for (const { name, value } of element.attributes) {
      const isOpen = element.getAttribute('sandbox') !== ''
      const acts = name.startsWith('on') || (name === 'srcdoc' && isOpen && value.includes('acted'))
      const leads = isAddress(name) && (value === 'x' || /^[\s\0-\x1f]*(javascript:|data:text)/i.test(value))
      if (acts || leads) found.push(`<${element.tagName.toLowerCase()} ${name}="${value}">`)
    }
  return found
}"""


def find_acting(page: Page) -> list[str]:
    """Find markup that has become a part of the page or its frames, or has even run."""
    return [found for frame in page.frames for found in frame.evaluate(_LOOK)]
