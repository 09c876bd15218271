/** The palette in the words of the component library. */
import type { GlobalThemeOverrides } from 'naive-ui'

import type { Palette } from './palettes'

export const SANS =
  'Inter, ui-sans-serif, system-ui, -apple-system, "Segoe UI", Roboto, "PingFang SC", "Microsoft YaHei", "Noto Sans CJK SC", "Noto Sans SC", sans-serif'
export const MONO =
  'ui-monospace, "JetBrains Mono", SFMono-Regular, Menlo, Consolas, "DejaVu Sans Mono", "Noto Sans Mono CJK SC", monospace'

export function naiveOverrides(p: Palette): GlobalThemeOverrides {
  return {
    common: {
      fontFamily: SANS,
      fontFamilyMono: MONO,
      borderRadius: '6px',
      borderRadiusSmall: '4px',
      primaryColor: p.accent,
      primaryColorHover: p.accentHover,
      primaryColorPressed: p.accentPressed,
      primaryColorSuppl: p.accent,
      infoColor: p.running,
      infoColorHover: p.running,
      infoColorPressed: p.running,
      infoColorSuppl: p.running,
      successColor: p.succeeded,
      successColorHover: p.succeeded,
      successColorPressed: p.succeeded,
      successColorSuppl: p.succeeded,
      warningColor: p.stopping,
      warningColorHover: p.stopping,
      warningColorPressed: p.stopping,
      warningColorSuppl: p.stopping,
      errorColor: p.failed,
      errorColorHover: p.failed,
      errorColorPressed: p.failed,
      errorColorSuppl: p.failed,
      bodyColor: p.canvas,
      cardColor: p.surface,
      modalColor: p.surface,
      popoverColor: p.raised,
      tableColor: p.surface,
      tableHeaderColor: p.surface,
      tableColorHover: p.sunken,
      inputColor: p.surface,
      hoverColor: p.sunken,
      borderColor: p.lineStrong,
      dividerColor: p.line,
      textColorBase: p.ink,
      textColor1: p.ink,
      textColor2: p.ink,
      textColor3: p.inkMuted,
      placeholderColor: p.inkFaint,
    },
    Alert: {
      colorWarning: p.warningSoft,
      colorInfo: p.infoSoft,
      colorError: p.dangerSoft,
      colorSuccess: p.accentSoft,
    },
    // The library's dark inputs have no border, which leaves fields without an edge on our surfaces.
    Input: { border: `1px solid ${p.lineStrong}`, borderDisabled: `1px solid ${p.line}` },
    Select: { peers: { InternalSelection: { border: `1px solid ${p.lineStrong}` } } },
    // The library fills chosen segments in its dark theme alone.
    Radio: { buttonColorActive: p.surface, buttonTextColorActive: p.accent },
    Card: { titleFontWeight: '600', titleFontSizeMedium: '18px' },
    Dialog: { titleFontWeight: '600' },
    Tabs: { tabTextColorLine: p.inkMuted, colorSegment: p.sunken, tabColorSegment: p.raised },
    Button: { fontWeight: '500' },
  }
}
