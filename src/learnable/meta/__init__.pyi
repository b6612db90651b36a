from .selection import Selection as Selection
from .selection import select as select
from .table_model import TableModel as TableModel
