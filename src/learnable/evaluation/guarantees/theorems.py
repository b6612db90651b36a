"""The theorem behind each estimator, by the name that its class declares as `_theory`.

A class says `_theory = "lasso"` next to its certificate; here stands what is assumed, what is guaranteed, and where it
is proven. `checks` names what a fitted model with data can be held against (`checks.py`).
"""

from __future__ import annotations

from typing import NamedTuple


class Theorem(NamedTuple):
    """What is known of an estimator."""

    kind: str  #: optimality, consistency, rate, oracle inequality, coverage, approximation, reduction, or none
    assumes: tuple[str, ...]  #: in words
    guarantees: str  #: in words
    reference: str  #: where it is proven
    checks: tuple[str, ...] = ()  #: names of checks that data allow


_IID = "rows are independent, of one distribution"

THEOREMS: dict[str, Theorem] = {
    "gauss-markov": Theorem(
        "optimality",
        ("y = Xβ + ε with E ε = 0", "errors are uncorrelated, of one variance", "the columns of X are independent"),
        "least squares has the smallest variance of all linear unbiased estimators; with normal errors, of all "
        "unbiased ones",
        "C. F. Gauss, 1823; A. Markov, 1900",
        ("linearity", "equal variance", "leverage", "order"),
    ),
    "ridge": Theorem(
        "optimality",
        ("y = Xβ + ε, errors uncorrelated and of one variance σ²",),
        "some α > 0 has a smaller mean squared error than least squares: every α below 2σ²/‖β‖²; it is the "
        "posterior mean under "
        "a normal prior of variance σ²/α",
        "A. Hoerl and R. Kennard, Technometrics 12, 1970; C. Theobald, 1974",
        ("equal variance", "order", "duplicates"),
    ),
    "lasso": Theorem(
        "oracle inequality",
        (
            "y = Xβ + ε with few nonzero β",
            "restricted eigenvalue of X is positive",
            "for the right columns: irrepresentable condition",
        ),
        "with α of order σ√(ln p/n), ‖X(β̂ − β)‖²/n is of order sσ² ln p/n; the nonzero columns are found if the "
        "irrepresentable "
        "condition holds and no coefficient is tiny",
        "P. Bickel, Y. Ritov and A. Tsybakov, Annals of Statistics 37, 2009; P. Zhao and B. Yu, JMLR 7, 2006",
        ("irrepresentable condition", "restricted eigenvalue", "order"),
    ),
    "best-subset": Theorem(
        "oracle inequality",
        ("y = Xβ + ε with s nonzero β", "noise of variance σ², normal or lighter in its tails"),
        "the best s columns have ‖X(β̂ − β)‖²/n of order σ² s ln(ep/s)/n without any condition on X; BIC finds "
        "the right columns as n grows with p fixed",
        "G. Raskutti, M. Wainwright and B. Yu, IEEE Transactions on Information Theory 57, 2011; "
        "R. Nishii, Annals of Statistics 12, 1984",
        ("order",),
    ),
    "forward-stepwise": Theorem(
        "approximation",
        ("submodularity ratio γ of R² over the chosen columns is positive (it is one for orthogonal columns)",),
        "R² of the first k columns is at least (1 − e^(−γ)) of that of the best k",
        "A. Das and D. Kempe, Submodular meets spectral, ICML 2011",
        ("order",),
    ),
    "backward-stepwise": Theorem(
        "approximation",
        ("rows outnumber columns, which are independent", "noise and coefficients small against their distance"),
        "finds the best subset if the residual of the best one is small against the smallest singular value of X",
        "C. Couvreur and Y. Bresler, SIAM Journal on Matrix Analysis and Applications 21, 2000",
        ("order",),
    ),
    "forward-stagewise": Theorem(
        "reduction",
        ("length of a move tends to zero",),
        "the path tends to that of the monotone lasso, and is the lasso's where its coefficients never turn back",
        "T. Hastie, J. Taylor, R. Tibshirani and G. Walther, Electronic Journal of Statistics 1, 2007",
        ("order",),
    ),
    "elastic-net": Theorem(
        "rate",
        ("y = Xβ + ε with few nonzero β", "for the right columns: elastic irrepresentable condition"),
        "strictly convex for α(1 − l1_ratio) > 0, so that the solution is unique and correlated columns get similar "
        "coefficients: "
        "|βᵢ − βⱼ| falls with their correlation",
        "H. Zou and T. Hastie, JRSS B 67, 2005, theorem 1; J. Jia and B. Yu, 2010",
        ("restricted eigenvalue", "order"),
    ),
    "group-lasso": Theorem(
        "oracle inequality",
        ("the targets share their nonzero columns", "restricted eigenvalue of X is positive"),
        "with T targets the error per target is of order s(1 + ln p/T)/n: shared columns are found with fewer rows "
        "than target by target",
        "K. Lounici, M. Pontil, A. Tsybakov and S. van de Geer, Annals of Statistics 39, 2011",
        ("order",),
    ),
    "bayes-linear": Theorem(
        "optimality",
        ("y = Xβ + ε with normal errors", "β has the normal prior"),
        "the posterior mean has the smallest mean squared error on average over the prior; intervals cover exactly "
        "on that average",
        "D. Lindley and A. Smith, JRSS B 34, 1972; D. MacKay, 1992 (evidence)",
        ("equal variance", "prior-data conflict", "order"),
    ),
    "maximum-likelihood": Theorem(
        "rate",
        (
            "y given x is of the stated exponential family, its mean a function of w·x",
            _IID,
            "the maximum exists: classes overlap",
        ),
        "the estimate is consistent, asymptotically normal, and of the smallest asymptotic variance (Cramér–Rao); "
        "with a wrong family it "
        "tends to the member nearest in Kullback–Leibler divergence; a penalty that falls with n changes nothing of "
        "this",
        "L. Fahrmeir and H. Kaufmann, Annals of Statistics 13, 1985; H. White, Econometrica 50, 1982",
        ("separability", "order", "duplicates"),
    ),
    "svm": Theorem(
        "consistency",
        (_IID, "C grows slower than the kernel's entropy allows", "for every distribution: a universal kernel"),
        "the risk tends to the Bayes risk for every distribution with a universal kernel; excess error is at most "
        "the excess hinge loss; a "
        "large margin bounds the risk without the dimension",
        "I. Steinwart, 2002; T. Zhang, Annals of Statistics 32, 2004; P. Bartlett and J. Shawe-Taylor, 1999",
        ("margins", "order", "duplicates"),
    ),
    "svr": Theorem(
        "consistency",
        (_IID, "the conditional median lies within the tube", "a universal kernel, C growing slowly"),
        "the predictions tend to a conditional median up to ε",
        "A. Christmann and I. Steinwart, Bernoulli 13, 2007",
        ("order", "bounded targets"),
    ),
    "one-class": Theorem(
        "consistency",
        (_IID,),
        "ν is an upper bound on the share of outliers and a lower bound on that of support vectors; both tend to ν "
        "for continuous "
        "distributions",
        "B. Schölkopf and others, Neural Computation 13, 2001, proposition 3",
        ("order", "duplicates"),
    ),
    "perceptron": Theorem(
        "optimality",
        ("some line separates the classes with margin γ", "‖x‖ ≤ R"),
        "at most R²/γ² mistakes in all passes; the last vector then separates the rows",
        "A. Novikoff, 1962",
        ("separability", "order"),
    ),
    "tree": Theorem(
        "consistency",
        (_IID, "leaves shrink and still hold ever more rows: leaves·ln n/n → 0"),
        "recursive partitions whose leaves shrink are consistent; a pruned tree obeys an oracle inequality over its "
        "subtrees; greedy "
        "splits alone can miss an exclusive or",
        "L. Breiman and others, Classification and Regression Trees, 1984, ch. 12; S. Gey and E. Nédélec, 2005",
        ("leaf sizes", "order", "duplicates"),
    ),
    "features": Theorem(
        "approximation",
        ("the regression function is continuous on a bounded set",),
        "polynomials and splines of growing size approximate it uniformly; of s derivatives, k pieces give an error "
        "of order k^{−s}",
        "K. Weierstrass, 1885; L. Schumaker, Spline Functions, 1981",
    ),
    "neighbours": Theorem(
        "consistency",
        (_IID, "k → ∞ and k/n → 0"),
        "the risk tends to the Bayes risk for every distribution; with k = 1 it is at most twice the Bayes risk in "
        "the limit",
        "C. Stone, Annals of Statistics 5, 1977; T. Cover and P. Hart, 1967",
        ("order", "duplicates"),
    ),
    "neighbour-search": Theorem(
        "optimality",
        ("the metric obeys the triangle inequality",),
        "the neighbours found are the nearest rows",
        "J. Bentley, 1975",
    ),
    "naive-bayes": Theorem(
        "rate",
        (_IID, "columns are independent within each class, of the stated family"),
        "under the assumption the risk tends to the Bayes risk, within O(√(ln d/n)) of its limit; without it, to "
        "that of the nearest "
        "product distributions",
        "A. Ng and M. Jordan, NIPS 2001; P. Domingos and M. Pazzani, 1997",
        ("independence within classes", "order"),
    ),
    "lda": Theorem(
        "optimality",
        ("each class is normal, with one covariance",),
        "the rule tends to the Bayes rule; it is Fisher's direction of largest separation whatever the distribution",
        "R. Fisher, 1936; T. Anderson, An Introduction to Multivariate Statistical Analysis, ch. 6",
        ("equal covariances", "order"),
    ),
    "qda": Theorem(
        "optimality",
        ("each class is normal",),
        "the rule tends to the Bayes rule, whose boundary is a conic",
        "T. Anderson, An Introduction to Multivariate Statistical Analysis, ch. 6",
        ("order",),
    ),
    "plug-in": Theorem(
        "consistency",
        (_IID, "each class is of the stated density"),
        "the excess risk is at most the L₁ error of the estimated densities, weighted by the classes",
        "L. Devroye, L. Györfi and G. Lugosi, 1996, ch. 2",
        ("order",),
    ),
    "hidden-markov": Theorem(
        "consistency",
        (
            "the hidden chain is irreducible and aperiodic",
            "states have different emissions",
            "the number of states is right",
        ),
        "the likelihood's maximum is consistent and asymptotically normal, up to the names of states; EM reaches a "
        "local maximum only",
        "B. Leroux, 1992; P. Bickel, Y. Ritov and T. Rydén, Annals of Statistics 26, 1998; L. Baum and others, 1970",
        ("ergodicity",),
    ),
    "kernel-ridge": Theorem(
        "rate",
        (_IID, "the regression function is in the kernel's space, or near it", "|y| is bounded"),
        "with λ of order n^{−b/(bc+1)} the excess risk falls as n^{−bc/(bc+1)}, which no method beats for such "
        "functions",
        "A. Caponnetto and E. De Vito, Foundations of Computational Mathematics 7, 2007",
        ("bounded targets", "order"),
    ),
    "kernel-logistic": Theorem(
        "consistency",
        (_IID, "a universal kernel, the penalty falling slowly"),
        "the risk tends to the Bayes risk, and the probabilities to the true ones",
        "T. Zhang, Annals of Statistics 32, 2004; J. Zhu and T. Hastie, 2005",
        ("separability", "order"),
    ),
    "gaussian-process": Theorem(
        "rate",
        ("y = f(x) + normal noise", "f is in the closure of the kernel's space"),
        "the posterior concentrates around f, at a rate that the smoothness of f and kernel decide; its mean is "
        "kernel ridge regression",
        "A. van der Vaart and H. van Zanten, Annals of Statistics 36, 2008; N. Choi and M. Schervish, 2007",
        ("order", "duplicates"),
    ),
    "kernel-pca": Theorem(
        "rate",
        (_IID, "k(x, x) is bounded"),
        "the share of variance kept on new rows differs from that on the rows by O(1/√n); a component is as certain "
        "as its eigengap is "
        "wide",
        "J. Shawe-Taylor and others, IEEE Transactions on Information Theory 51, 2005",
    ),
    "nystroem": Theorem(
        "approximation",
        ("eigenvalues of the kernel matrix fall fast",),
        "with m rows drawn at random, E‖K − K̃‖ ≤ ‖K − K_k‖ + O(1/√m); ridge regression on it keeps its rate from m "
        "of order √n",
        "P. Drineas and M. Mahoney, JMLR 6, 2005; A. Rudi, R. Camoriano and L. Rosasco, 2015",
    ),
    "random-features": Theorem(
        "approximation",
        ("the kernel is shift-invariant",),
        "with D features the kernel is approximated uniformly on a bounded set within O(√(d ln D/D))",
        "A. Rahimi and B. Recht, NIPS 2007, claim 1; B. Sriperumbudur and Z. Szabó, 2015",
    ),
    "encoding": Theorem(
        "none",
        (),
        "a description of the table, not a prediction: nothing is claimed of a risk; features that look at the "
        "target are cross-fitted",
        "D. Micci-Barreca, 2001",
    ),
    "wrapped": Theorem(
        "reduction",
        ("those of the model inside, on the encoded or rescaled table",),
        "those of the model inside: ask explain_theory(model.model_), or its regressor",
        "see the model inside",
        ("order",),
    ),
    "blending": Theorem(
        "oracle inequality",
        ("members were fitted to other rows than the weights, as cross-validation does", "the loss is bounded"),
        "the convex combination is at most O(√(ln M/n)) worse than the best one of M members",
        "A. Tsybakov, Optimal rates of aggregation, COLT 2003",
        ("order",),
    ),
    "regularised-risk": Theorem(
        "optimality",
        ("the loss is convex in the score, and the penalty in the coefficients", _IID),
        "the three forms have the same solutions at matching parameters; with a loss that is L-Lipschitz and rows "
        "‖x‖ ≤ R, the Ivanov form ‖w‖ ≤ B has a risk at most 2LRB/√n + O(1/√n) above its empirical risk",
        "P. Bartlett and S. Mendelson, JMLR 3, 2002; L. Oneto, S. Ridella and D. Anguita, Machine Learning 103, 2016",
        ("order",),
    ),
    "one-vs-rest": Theorem(
        "reduction",
        ("those of the binary model inside",),
        "the error is at most the sum of the K binary errors; with consistent probabilities the rule is consistent",
        "R. Rifkin and A. Klautau, JMLR 5, 2004; A. Beygelzimer, J. Langford and B. Zadrozny, 2005",
        ("order",),
    ),
    "one-vs-one": Theorem(
        "reduction",
        ("those of the binary model inside",),
        "a row is misclassified only if one of the K − 1 pairs of its class errs, so that the error is at most the "
        "sum of theirs",
        "T. Hastie and R. Tibshirani, Annals of Statistics 26, 1998; E. Allwein, R. Schapire and Y. Singer, JMLR 1, "
        "2000",
        ("order",),
    ),
    "bagging": Theorem(
        "optimality",
        (_IID,),
        "averaging never raises the mean squared error above the members' mean (Jensen), and lowers the variance of "
        "unstable members",
        "L. Breiman, 1996; P. Bühlmann and B. Yu, Annals of Statistics 30, 2002",
        ("order", "duplicates"),
    ),
    "forest": Theorem(
        "consistency",
        (_IID, "for consistency: an additive regression function, or trees that shrink their leaves"),
        "the error of the vote is at most ρ̄(1 − s²)/s², with strength s and mean correlation ρ̄ of the trees; "
        "forests of pruned or "
        "subsampled trees are consistent for additive functions",
        "L. Breiman, Machine Learning 45, 2001, theorem 2.3; E. Scornet, G. Biau and J.-P. Vert, Annals of "
        "Statistics 43, 2015",
        ("order", "duplicates"),
    ),
    "adaboost": Theorem(
        "rate",
        ("each round's learner beats chance by γ",),
        "the training error is at most ∏ 2√(ε(1 − ε)) ≤ e^{−2Tγ²}; stopped after n^{1−ε} rounds it is consistent; "
        "margins bound the risk "
        "without the number of rounds",
        "Y. Freund and R. Schapire, 1997; P. Bartlett and M. Traskin, JMLR 8, 2007; R. Schapire and others, 1998",
        ("weak learning", "order"),
    ),
    "adaboost-regression": Theorem(
        "none",
        (),
        "no consistency or rate is known of AdaBoost.R2; the weighted median is the prediction",
        "H. Drucker, 1997",
        ("order",),
    ),
    "boost-by-majority": Theorem(
        "rate",
        ("the weak learner errs at most on ε < ½ under every distribution",),
        "the vote of three errs at most on 3ε² − 2ε³, and recursion brings any error down",
        "R. Schapire, The strength of weak learnability, 1990",
        ("order",),
    ),
    "gradient-boosting": Theorem(
        "consistency",
        (_IID, "small steps, or early stopping; members whose span is dense"),
        "greedy steps approach the least risk over the span at a rate of 1/T; stopped early, the procedure is "
        "consistent",
        "T. Zhang and B. Yu, Annals of Statistics 33, 2005; P. Bühlmann and B. Yu, JASA 98, 2003",
        ("order", "duplicates"),
    ),
    "k-means": Theorem(
        "consistency",
        (_IID, "the best k centres are unique", "E‖x‖² is finite"),
        "the best centres of the rows tend to the best centres of the distribution, excess distortion O(1/√n); "
        "Lloyd's steps reach a local "
        "optimum, which k-means++ starts within 8(ln k + 2) of the best on average",
        "D. Pollard, Annals of Statistics 9, 1981; D. Arthur and S. Vassilvitskii, 2007",
        ("cluster sizes", "order"),
    ),
    "k-medoids": Theorem(
        "consistency",
        (_IID, "the best k medoids are unique"),
        "the medoids of the rows tend to those of the distribution; swaps end in a local optimum within a factor of "
        "5 of the best",
        "L. Kaufman and P. Rousseeuw, 1987; V. Arya and others, SIAM Journal on Computing 33, 2004",
        ("cluster sizes", "order"),
    ),
    "stochastic-k-means": Theorem(
        "consistency",
        (_IID, "steps of 1/count"),
        "the centres converge almost surely to a stationary point of the distortion",
        "L. Bottou and Y. Bengio, NIPS 1995",
        ("cluster sizes", "order"),
    ),
    "mixture": Theorem(
        "consistency",
        ("the mixture is identifiable: components differ", "covariances are bounded away from zero", _IID),
        "EM never lowers the likelihood and ends at a stationary point; near the truth that is the consistent root, "
        "up to the names of "
        "components",
        "A. Dempster, N. Laird and D. Rubin, 1977; C. Wu, Annals of Statistics 11, 1983; R. Redner and H. Walker, 1984",
        ("identifiability", "order"),
    ),
    "topic-model": Theorem(
        "consistency",
        (
            "words of a document are exchangeable given its topics",
            "for identified topics: each has a word of its own (anchor), or all are far apart and documents are many",
        ),
        "the law of the sampler converges to the posterior; with anchor words topics are identified, up to their "
        "names, from the co-occurrence of words",
        "T. Griffiths and M. Steyvers, PNAS 101, 2004; S. Arora, R. Ge and A. Moitra, FOCS 2012",
        ("order",),
    ),
    "population-structure": Theorem(
        "consistency",
        (
            "loci are independent within a population, and so are the two copies of an individual",
            "each population has loci, or individuals, that are its own",
        ),
        "the sampler's law converges to the posterior; Q and P are identified up to the names of populations once "
        "every population has individuals of its own, and maximum likelihood is then consistent in loci and people",
        "J. Pritchard, M. Stephens and P. Donnelly, Genetics 155, 2000; H. Tang et al., Genetic Epidemiology 28, 2005",
        ("order",),
    ),
    "variational": Theorem(
        "consistency",
        ("the mixture is identifiable: components differ", _IID),
        "the evidence bound never falls; the variational mean is consistent, its spread too small; superfluous "
        "weights tend to zero for "
        "small concentrations",
        "B. Wang and D. Titterington, Bayesian Analysis 1, 2006; J. Rousseau and K. Mengersen, JRSS B 73, 2011",
        ("identifiability", "order"),
    ),
    "experts": Theorem(
        "rate",
        (_IID, "experts differ, up to their names"),
        "EM never lowers the likelihood; m experts approximate twice differentiable functions within O(m^{−4/d}) of "
        "divergence",
        "M. Jordan and L. Xu, 1995; W. Jiang and M. Tanner, Annals of Statistics 27, 1999",
        ("order",),
    ),
    "calibration": Theorem(
        "consistency",
        ("rows for calibration are exchangeable with those to come",),
        "isotonic regression of labels on scores is consistent, at n^{−1/3}; a sigmoid is right if scores are "
        "log-odds up to a line",
        "J. Platt, 1999; B. Zadrozny and C. Elkan, 2002; R. Barlow and others, 1972",
        ("order", "duplicates"),
    ),
    "conformal": Theorem(
        "coverage",
        ("rows for calibration are exchangeable with those to come",),
        "sets cover with probability at least the level, for every n and every model; at most 1/(n + 1) more "
        "without ties. Jackknife+ and "
        "CV+ cover at least 1 − 2α",
        "V. Vovk, A. Gammerman and G. Shafer, 2005; R. Barber, E. Candès, A. Ramdas and R. Tibshirani, Annals of "
        "Statistics 49, 2021",
        ("order", "duplicates"),
    ),
    "principal-components": Theorem(
        "optimality",
        (_IID, "for stable axes: the eigenvalues differ"),
        "no projection of that dimension leaves a smaller squared error on the rows; each eigenvector is within "
        "O(1/(gap·√n)) of that of "
        "the distribution",
        "C. Eckart and G. Young, 1936; C. Davis and W. Kahan, 1970; T. Anderson, 1963",
        ("order", "duplicates"),
    ),
    "probabilistic-components": Theorem(
        "consistency",
        (_IID, "rows are normal with equal noise; values are missing at random"),
        "the estimate is the maximum of the likelihood of what was observed (with gaps, a local one); as rows grow it "
        "tends to the covariance of the model",
        "M. Tipping and C. Bishop, 1999; D. Rubin, 1976 (missing values)",
        ("order", "duplicates"),
    ),
    "stress-majorisation": Theorem(
        "optimality",
        ("dissimilarities are symmetric and not negative",),
        "no step raises the stress, and its limit points are stationary; of a point without coinciding rows, local "
        "minima",
        "J. de Leeuw, Journal of Classification 5, 1988; J. Kruskal, Psychometrika 29, 1964",
        (),
    ),
    "neighbour-affinities": Theorem(
        "consistency",
        ("rows form clusters that lie well apart, each of about the same size and width", "the exaggeration is large"),
        "in the phase of exaggeration every cluster shrinks to a set whose diameter is small against its distance to "
        "the others, and the picture keeps them apart; the objective is not convex, and its steps end near a "
        "stationary point",
        "S. Arora, W. Hu and P. Kothari, COLT 2018; G. Linderman and S. Steinerberger, SIAM Journal on Mathematics of "
        "Data Science 1, 2019",
        (),
    ),
    "nonnegative-factors": Theorem(
        "optimality",
        ("numbers are not negative",),
        "no step raises the squared error, and limit points of coordinate descent satisfy the conditions of Karush, "
        "Kuhn and Tucker; another start may end elsewhere",
        "A. Cichocki and A.-H. Phan, 2009; N. Gillis and F. Glineur, Neural Computation 24, 2012",
        (),
    ),
    "multidimensional-scaling": Theorem(
        "optimality",
        ("distances are Euclidean, or nearly so",),
        "for Euclidean distances the configuration is exact, up to rotation; otherwise it is the nearest positive "
        "semidefinite Gram "
        "matrix of its rank",
        "I. Schoenberg, 1935; W. Torgerson, 1952; K. Mardia, 1978",
    ),
    "isomap": Theorem(
        "consistency",
        ("rows lie on a manifold isometric to a convex set", "rows are dense, the radius of neighbours falls slowly"),
        "distances along the graph tend to those along the manifold, and the embedding to its coordinates",
        "J. Tenenbaum, V. de Silva and J. Langford, Science 290, 2000; M. Bernstein and others, 2000",
    ),
    "locally-linear": Theorem(
        "consistency",
        ("rows lie on a smooth manifold", "neighbourhoods are nearly flat"),
        "with the right regularisation the weights' operator tends to the Laplace–Beltrami operator; otherwise the "
        "limit depends on it",
        "S. Roweis and L. Saul, 2000; H.-T. Wu and N. Wu, Annals of Statistics 46, 2018",
    ),
    "spectral-embedding": Theorem(
        "consistency",
        ("rows lie on a smooth manifold", "the bandwidth falls slowly"),
        "the graph Laplacian's eigenvectors tend to eigenfunctions of a Laplace–Beltrami operator, weighted by the "
        "density unless it is "
        "divided out",
        "M. Belkin and P. Niyogi, 2007; R. Coifman and S. Lafon, 2006; U. von Luxburg, M. Belkin and O. Bousquet, 2008",
    ),
    "spectral-clustering": Theorem(
        "approximation",
        ("clusters are joined by few edges",),
        "λ₂/2 ≤ conductance ≤ √(2λ₂) (Cheeger); the normalised form is consistent, the other need not be",
        "N. Alon and V. Milman, 1985; U. von Luxburg, M. Belkin and O. Bousquet, Annals of Statistics 36, 2008",
        ("cluster sizes",),
    ),
    "network": Theorem(
        "approximation",
        (_IID, "enough units", "training finds a good minimum, which is not proven"),
        "one hidden layer approximates every continuous function on a bounded set; the risk is bounded by norms of "
        "the layers over the "
        "margin; gradient descent reaches stationary points only",
        "G. Cybenko, 1989; K. Hornik, 1991; N. Golowich, A. Rakhlin and O. Shamir, COLT 2018",
        ("order", "duplicates"),
    ),
    "greedy-selection": Theorem(
        "approximation",
        ("columns are not too correlated",),
        "k greedy steps explain at least 1 − e^{−γ} of what the best k columns do, γ the submodularity ratio of X",
        "A. Das and D. Kempe, 2011; J. Tropp, 2004",
        ("order",),
    ),
    "gibbs-sampler": Theorem(
        "consistency",
        ("the chain is irreducible and aperiodic", "it has run long enough, which R-hat can refute and never prove"),
        "averages over the draws tend to posterior means; the posterior itself concentrates if the model is "
        "identifiable, up to the "
        "names of topics",
        "S. Geman and D. Geman, 1984; L. Tierney, Annals of Statistics 22, 1994; T. Griffiths and M. Steyvers, 2004",
        ("ergodicity",),
    ),
}
