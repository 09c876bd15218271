"""What a person does on a page, as often as the page's own motions need."""

from playwright.sync_api import Locator, Page, expect


def choose_from_menu(page: Page, button: Locator, choice: str) -> None:
    """Open the menu of ``button`` and click the entry that reads ``choice``.

    A menu appears before it has its place, and a click that is under way when it moves there meets nothing.
    """
    button.click()
    expect(page.locator(".n-dropdown-menu")).to_have_count(1)  # one that closes stays for a moment
    entry = page.locator(".n-dropdown-option").get_by_text(choice, exact=True)
    expect(entry).to_be_visible()
    expect(page.locator(".popover-transition-enter-active")).to_have_count(0)
    entry.click()


def choose_from_select(page: Page, select: Locator, choice: str) -> None:
    """Open the menu of the field ``select`` and click the entry that contains ``choice``.

    A menu stays in the page after it has closed, so that the same entries may be there twice.
    """
    menu = page.locator(".n-base-select-menu").filter(visible=True)
    expect(menu).to_have_count(0)
    select.click()
    entry = menu.locator(".n-base-select-option", has_text=choice)
    expect(entry).to_be_visible()
    expect(page.locator("[class*=-transition-enter-active]")).to_have_count(0)
    entry.click()
