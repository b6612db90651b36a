from .elastic_net import ElasticNet as ElasticNet
from .elastic_net import Lasso as Lasso
from .elastic_net import MultiTaskElasticNet as MultiTaskElasticNet
from .elastic_net import MultiTaskLasso as MultiTaskLasso
from .lasso_cv import ElasticNetCV as ElasticNetCV
from .lasso_cv import LassoCV as LassoCV
from .lasso_cv import enet_path as enet_path
from .lasso_cv import lasso_path as lasso_path
