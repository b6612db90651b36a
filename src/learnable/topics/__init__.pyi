from .corpus import Corpus as Corpus
from .corpus import corpus_of as corpus_of
from .sampler import TopicSampler as TopicSampler
from .sampler import sample_topics as sample_topics
