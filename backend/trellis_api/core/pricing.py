"""What an hour of a slot costs, where the platform's owner set a price, and amounts of money for clients."""

from dataclasses import dataclass

from pydantic import BaseModel, Field


class Cost(BaseModel):
    """An amount of money."""

    amount: float
    currency: str = Field(description="ISO 4217 code, such as USD.")


class SlotPriceRead(BaseModel):
    """Price of one slot-hour."""

    per_hour: float = Field(description="Of a GPU, or on a CPU platform of a CPU slot.")
    currency: str = Field(description="ISO 4217 code, such as USD.")


@dataclass(frozen=True)
class SlotPrice:
    """The price of a slot for an hour."""

    per_hour: float
    currency: str

    def of(self, slot_seconds: float) -> Cost:
        """Return the cost of this many slot-seconds."""
        return Cost(amount=round(slot_seconds / 3600 * self.per_hour, 4), currency=self.currency)

    def hours_for(self, amount: float) -> float:
        """Return the slot-hours that an amount buys."""
        return amount / self.per_hour

    def present(self) -> SlotPriceRead:
        """Present the price as clients see it."""
        return SlotPriceRead(per_hour=self.per_hour, currency=self.currency)
