from .one_vs_one import OneVsOneClassifier as OneVsOneClassifier
from .one_vs_rest import OneVsRestClassifier as OneVsRestClassifier
from .selection import Selection as Selection
from .selection import select as select
from .table_model import TableModel as TableModel
