"""What can go wrong with datasets."""

from trellis_api.core.errors import Conflict, DomainError, InvalidRequest, NotFound


class DatasetNotFound(NotFound):
    """No dataset has this id."""

    code = "dataset_not_found"


class DatasetNameTaken(Conflict):
    """Another dataset has this name."""

    code = "dataset_name_taken"


class DatasetInUse(Conflict):
    """An unfinished job, dry run or task uses the dataset."""

    code = "dataset_in_use"


class DatasetNotReady(Conflict):
    """The dataset has no rows (yet)."""

    code = "dataset_not_ready"


class VersionNotFound(NotFound):
    """The dataset has no such version, branch or tag."""

    code = "version_not_found"


class SplitNotFound(NotFound):
    """The version has no such split."""

    code = "split_not_found"


class DatasetFileMissing(DomainError):
    """The row exists but its file is gone or damaged."""

    status = 500
    code = "dataset_file_missing"


class SourceUnfit(InvalidRequest):
    """Rows cannot be imported from there; ``details`` name the code and the field."""

    code = "source_unfit"


class SearchUnfit(InvalidRequest):
    """Rows cannot be looked for like this: a column is not there, or a value does not fit it."""

    code = "search_unfit"


class RowsUnfit(Conflict):
    """The dataset holds rows of another kind than those to be added."""

    code = "rows_unfit"


class QuarantineNotFound(NotFound):
    """No import has this id, or it has kept no rows aside."""

    code = "quarantine_not_found"


class VersionAmbiguous(InvalidRequest):
    """Several versions begin with these digits."""

    code = "version_ambiguous"


class BranchMoved(Conflict):
    """Another version came to the branch meanwhile."""

    code = "branch_moved"


class VersionInUse(Conflict):
    """Something reads the version, came of it or names it; ``details.uses`` says what."""

    code = "version_in_use"


class RefInUse(Conflict):
    """An active pipeline or sweep is going to read what the branch or tag stands on."""

    code = "ref_in_use"


class RefNotFound(NotFound):
    """The dataset has no branch or tag of this name."""

    code = "ref_not_found"


class SampleUnknown(NotFound):
    """No sample dataset has this name."""

    code = "sample_dataset_not_found"


class RefNameTaken(Conflict):
    """A branch or tag has this name."""

    code = "ref_name_taken"


class MainBranchStays(Conflict):
    """A dataset is what its branch main says."""

    code = "main_branch_stays"


class DiffNotComputed(Conflict):
    """Nobody has asked for this comparison, or it is not done yet."""

    code = "diff_not_computed"


class DiffNotPossible(InvalidRequest):
    """The versions cannot be compared so; ``details.code`` says why."""

    code = "diff_not_possible"


class StoreBusy(Conflict):
    """Rows that no version holds are being tidied away; nothing is written meanwhile."""

    code = "store_busy"
