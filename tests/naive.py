"""Slow, obvious twins of the fast paths: plain loops over the definitions, nothing clever."""

from itertools import permutations, product

import numpy as np


def central(X):
    return X - X.mean(axis=0)


def covariance(X):
    n, p = X.shape
    X = central(X)
    S = np.zeros((p, p))
    for i, j in product(range(p), repeat=2):
        S[i, j] = sum(X[t, i] * X[t, j] for t in range(n)) / n
    return S


def fourth_cumulant(X):
    """The paper's formula, entry by entry."""
    n, p = X.shape
    S = covariance(X)
    X = central(X)
    T = np.zeros((p, p, p, p))
    for i, j, k, m in product(range(p), repeat=4):
        moment = 0.0
        for t in range(n):
            moment += X[t, i] * X[t, j] * X[t, k] * X[t, m]
        T[i, j, k, m] = moment / n - S[i, j] * S[k, m] - S[i, k] * S[j, m] - S[i, m] * S[j, k]
    return T


def third_cumulant(X):
    """The third central moment, entry by entry."""
    n, p = X.shape
    X = central(X)
    T = np.zeros((p, p, p))
    for i, j, k in product(range(p), repeat=3):
        T[i, j, k] = sum(X[t, i] * X[t, j] * X[t, k] for t in range(n)) / n
    return T


def pairwise_moment(X, *columns):
    """The mean of a product about the observed means, over the rows in which all were observed."""
    means = [np.mean([x for x in X[:, j] if not np.isnan(x)]) for j in range(X.shape[1])]
    total, count = 0.0, 0
    for row in X:
        if not any(np.isnan(row[j]) for j in columns):
            product_ = 1.0
            for j in columns:
                product_ *= row[j] - means[j]
            total, count = total + product_, count + 1
    return total / count


def pairwise_cumulants(X):
    """κ₂, κ₃ and κ₄ from observed entries, entry by entry."""
    p = X.shape[1]
    S, T, K = np.zeros((p,) * 2), np.zeros((p,) * 3), np.zeros((p,) * 4)
    for i, j in product(range(p), repeat=2):
        S[i, j] = pairwise_moment(X, i, j)
    for i, j, k in product(range(p), repeat=3):
        T[i, j, k] = pairwise_moment(X, i, j, k)
    for i, j, k, m in product(range(p), repeat=4):
        K[i, j, k, m] = pairwise_moment(X, i, j, k, m)
        K[i, j, k, m] -= S[i, j] * S[k, m] + S[i, k] * S[j, m] + S[i, m] * S[j, k]
    return S, T, K


def conditional_means(X, mean, S):
    """Rows with every gap replaced by its mean given what was observed, under a covariance."""
    filled = X.copy()
    for row in filled:
        gaps = np.isnan(row)
        solved = np.linalg.solve(S[np.ix_(~gaps, ~gaps)], row[~gaps] - mean[~gaps])
        row[gaps] = mean[gaps] + S[np.ix_(gaps, ~gaps)] @ solved
    return filled


def third_rank_one_sum(weights, vectors):
    p = vectors.shape[0]
    T = np.zeros((p, p, p))
    for weight, u in zip(weights, vectors.T, strict=True):
        for i, j, k in product(range(p), repeat=3):
            T[i, j, k] += weight * u[i] * u[j] * u[k]
    return T


def third_apply_vector(T, u):
    p = u.size
    out = np.zeros(p)
    for i, j, k in product(range(p), repeat=3):
        out[i] += T[i, j, k] * u[j] * u[k]
    return out


def rank_one_sum(weights, vectors):
    p = vectors.shape[0]
    T = np.zeros((p, p, p, p))
    for weight, u in zip(weights, vectors.T, strict=True):
        for i, j, k, m in product(range(p), repeat=4):
            T[i, j, k, m] += weight * u[i] * u[j] * u[k] * u[m]
    return T


def symmetrise(T):
    return sum(T.transpose(axes) for axes in permutations(range(4))) / 24


def apply(T, V):
    p = V.shape[0]
    out = np.zeros((p, p))
    for i, j, k, m in product(range(p), repeat=4):
        out[i, j] += T[i, j, k, m] * V[k, m]
    return out


def apply_vector(T, u):
    p = u.size
    out = np.zeros(p)
    for i, j, k, m in product(range(p), repeat=4):
        out[i] += T[i, j, k, m] * u[j] * u[k] * u[m]
    return out


def mat(T):
    """The paper's p² × p² flattening."""
    p = T.shape[0]
    return T.reshape(p * p, p * p)


def eigenpairs(T, rank):
    """Eigenvalues of the p² × p² flattening by magnitude, eigenvectors as p × p matrices."""
    values, vectors = np.linalg.eigh(mat(T))
    order = np.argsort(-np.abs(values))[:rank]
    p = T.shape[0]
    return values[order], [vectors[:, i].reshape(p, p) for i in order]


def htd(T, rank):
    """Algorithm 1, line by line."""
    values, matrices = eigenpairs(T, rank)
    weights, vectors = [], []
    for mu, M in zip(values, matrices, strict=True):
        betas, axes = np.linalg.eigh((M + M.T) / 2)
        top = np.argmax(np.abs(betas))
        weights.append(mu * betas[top] ** 2)
        vectors.append(axes[:, top])
    return np.array(weights), np.array(vectors).T


def subspace_power_method(T, rank, rng):
    """One start at a time, plain power steps, deflation of the tensor after every vector."""
    p = T.shape[0]
    weights, vectors = [], []
    T = T.copy()
    for left in range(rank, 0, -1):
        values, matrices = eigenpairs(T, left)
        for _ in range(50):
            x = rng.standard_normal(p)
            x /= np.linalg.norm(x)
            for _ in range(5000):
                image = sum(np.sum(M * np.outer(x, x)) * M @ x for M in matrices)
                new = image / np.linalg.norm(image)
                moved = np.linalg.norm(new - x)
                x = new
                if moved < 1e-13:
                    break
            if 1 - sum(np.sum(M * np.outer(x, x)) ** 2 for M in matrices) < 1e-10:
                break
        inverse = sum(
            np.outer(M.ravel(), M.ravel()) / d for d, M in zip(values, matrices, strict=True)
        )
        square = np.outer(x, x).ravel()
        weights.append(1 / (square @ inverse @ square))
        vectors.append(x)
        T = T - rank_one_sum(weights[-1:], x[:, None])
    return np.array(weights), np.array(vectors).T


def ascent_on_the_sphere(matrices, x):
    """``|Hessian|⁻¹ gradient`` of f/4 on the sphere, by eigenvalues, and those off x."""
    p = x.size
    f = sum((x @ V @ x) ** 2 for V in matrices)
    gradient = sum((x @ V @ x) * V @ x for V in matrices)
    hessian = sum((x @ V @ x) * V + 2 * np.outer(V @ x, V @ x) for V in matrices)
    off = np.eye(p) - np.outer(x, x)
    curvatures, axes = np.linalg.eigh(off @ hessian @ off - f * np.eye(p))
    step = axes @ ((axes.T @ (gradient - f * x)) / np.maximum(np.abs(curvatures), 1e-6))
    return step, curvatures


def thin_weight(T, rank, a):
    """The formula in the proof of prop:iden_alg2, on the p² × p² flattening."""
    values, matrices = eigenpairs(T, rank)
    V = np.array([M.ravel() for M in matrices]).T
    A = np.outer(a, a).ravel()
    return 1 / ((A @ V) @ np.diag(1 / values) @ (A @ V))


def weights_one_after_another(flattening, squares, rank):
    """Step 2 with a new decomposition of what is left for every pattern; the A_i are columns."""
    rest, q = flattening.copy(), len(flattening)
    weights = []
    for A in squares.T:
        values, vectors = np.linalg.eigh(rest)
        order = np.argsort(-np.abs(values))[: max(rank, 1)]
        big = [k for k in order if abs(values[k]) > q * 2.0**-52 * np.abs(values).max()]
        shares = {k: vectors[:, k] @ A for k in big}
        weight = 0.0
        if len(big) == len(order) or sum(share**2 for share in shares.values()) > 1 - 1e-8:
            weight = 1 / sum(share**2 / values[k] for k, share in shares.items())
            rest = rest - weight * np.outer(A, A)
            rank -= 1
        weights.append(weight)
    return np.array(weights)


def pooled_deviations(datasets):
    """Standard deviations of all rows together, each about the mean of its dataset."""
    total, n = 0.0, 0
    for X in datasets:
        for x in central(X):
            total, n = total + x**2, n + 1
    return np.sqrt(total / n)


def rescaled(datasets, scale):
    """Rows of every dataset about its mean, divided by deviations of all ("pooled") or of its own."""
    if scale == "pooled":
        return [central(X) / pooled_deviations(datasets) for X in datasets]
    return [central(X) / pooled_deviations([X]) for X in datasets]


def contrast_ratio(X, Y, b):
    return np.var(X @ b) / np.var(Y @ b)


def model_jacobian(vectors, weights, norms, orders, step=1e-6):
    """Derivatives of all dense model tensors, over their norms, by central differences.

    Columns: the entries of the first vector, of the second, …, each kept at unit length; then the
    weights of the first term, of the second, ….
    """
    p, k = vectors.shape

    def model(point):
        loose, W = point[: p * k].reshape(k, p).T, point[p * k :].reshape(len(norms), k)
        unit = loose / np.linalg.norm(loose, axis=0)
        made = {3: third_rank_one_sum, 4: rank_one_sum}
        dense = [
            made[order](w, unit).ravel() / norm**0.5
            for w, norm, order in zip(W, norms, orders, strict=True)
        ]
        return np.concatenate(dense)

    here = np.concatenate([vectors.T.ravel(), weights.ravel()])
    columns = []
    for i in range(here.size):
        ahead, behind = here.copy(), here.copy()
        ahead[i] += step
        behind[i] -= step
        columns.append((model(ahead) - model(behind)) / (2 * step))
    return np.array(columns).T


def weighted_cumulant(X, chances, u, order=4):
    """κ₄(u, u, u, ·), or κ₃(u, u, ·), of the distribution that gives each row its own probability."""
    p = X.shape[1]
    mean = sum(chance * x for chance, x in zip(chances, X, strict=True))
    X = X - mean
    S = sum(chance * np.outer(x, x) for chance, x in zip(chances, X, strict=True))
    moment = np.zeros(p)
    for chance, x in zip(chances, X, strict=True):
        moment += chance * (x @ u) ** (order - 1) * x
    if order == 3:
        return moment
    return moment - 3 * (u @ S @ u) * (S @ u)


def group_influence(X, groups, u, step=1e-5, order=4):
    """Change of κ₄(u, u, u, ·), or κ₃, as a group gets more probability, less the mean change."""
    n = len(X)
    changes = []
    for group in groups:
        own = np.zeros(n)
        own[group] = 1 / len(group)
        ahead, behind = (
            weighted_cumulant(X, (1 - e) / n + e * own, u, order) for e in (step, -step)
        )
        changes.append((ahead - behind) / (2 * step))
    return np.array(changes) - np.mean(changes, axis=0)


def trimmed_mean_and_error(values, share):
    """Trimmed mean, and the square of its standard error by the winsorised values (Yuen, 1974)."""
    ordered, n = sorted(values), len(values)
    g = int(share * n)
    h = n - 2 * g
    mean = sum(ordered[g : n - g]) / h
    winsorised = [ordered[g]] * g + ordered[g : n - g] + [ordered[n - g - 1]] * g
    centre = sum(winsorised) / n
    return mean, sum((w - centre) ** 2 for w in winsorised) / (h * (h - 1))


def winsorized(X, share, times=3):
    """Rows beyond the quantile of Mahalanobis' distance, brought to it one by one; several times."""
    for _ in range(times):
        mean, inverse = X.mean(axis=0), np.linalg.inv(covariance(X))
        distances = [np.sqrt((x - mean) @ inverse @ (x - mean)) for x in X]
        most = np.quantile(distances, share)
        X = np.array(
            [
                x if d <= most else mean + (x - mean) * most / d
                for x, d in zip(X, distances, strict=True)
            ]
        )
    return X


def negentropy(sources, skewness_weight):
    """Hyvarinen's approximation by two moments, source by source and row by row."""
    k1, k2 = 36 / (8 * 3**0.5 - 9), 24 / (16 * 3**0.5 - 27)
    total = 0.0
    for source in np.asarray(sources).T:
        tails = sum(np.exp(-(s**2) / 2) for s in source) / len(source) - 0.5**0.5
        skewness = sum(s * np.exp(-(s**2) / 2) for s in source) / len(source)
        total += k2 * tails**2 + skewness_weight * k1 * skewness**2
    return total


def negentropy_slope(rows, turn, skewness_weight, step=1e-5):
    """Derivative of J of the turned rows by every entry of the matrix, by central differences."""
    slope = np.zeros(turn.shape)
    for i, j in product(*map(range, turn.shape)):
        ahead, behind = turn.copy(), turn.copy()
        ahead[i, j] += step
        behind[i, j] -= step
        change = negentropy(rows @ ahead, skewness_weight) - negentropy(
            rows @ behind, skewness_weight
        )
        slope[i, j] = change / (2 * step)
    return slope


def ratio_in_rows(fore, back, filters, background_filters, own_means):
    """k(f) of every source in some rows: products with the rows, source by source."""
    found = []
    for one, other in zip(filters, background_filters, strict=True):
        above, below = fore @ one, back @ other
        centre = above.mean() if own_means else below.mean()
        found.append(sum((score - centre) ** 2 for score in above) / len(above) / below.var())
    return np.array(found)


def sequential_p_values(splits, level):
    """Of covariances of permutations, the observed first: accepted directions projected out in turn."""
    fore, back, floor_of = splits[0]
    p = len(fore)
    damped = back + floor_of(np.eye(p)) * np.eye(p)
    values, axes = np.linalg.eig(np.linalg.solve(damped, fore))
    axes = axes[:, np.argsort(-values.real)].real
    p_values = []
    for first in range(p):
        q = np.linalg.qr(axes[:, first:])[0]
        largest = []
        for fore, back, floor_of in splits:
            damped = q.T @ back @ q + floor_of(q @ q.T) * np.eye(p - first)
            largest.append(np.linalg.eigvals(np.linalg.solve(damped, q.T @ fore @ q)).real.max())
        exceeding = sum(value >= largest[0] * (1 - 1e-9) for value in largest[1:])
        p_values.append(max([(1 + exceeding) / len(splits), *p_values]))
        if p_values[-1] > level:
            break
    return p_values


def ratio_p_value(scores, masks):
    """Of scores about their dataset's mean: how many assignments have as large a ratio of variances."""
    ratios = [np.var(scores[mask]) / np.var(scores[~mask]) for mask in masks]
    return np.mean([ratio >= ratios[0] * (1 - 1e-9) for ratio in ratios])


def moved_with_others(rows, axis):
    """Each variable's covariance with the score of all others, over that score's standard deviation."""
    found = []
    for j in range(rows.shape[1]):
        others = np.delete(rows, j, axis=1) @ np.delete(axis, j)
        found.append(
            np.mean((rows[:, j] - rows[:, j].mean()) * (others - others.mean())) / others.std()
        )
    return np.array(found)


def contrastive_pca_path(fore, back, count, alphas):
    """Leading eigenvectors of ``C_x − α C_y``, each α by itself, from a decomposition of all."""
    found = []
    for alpha in alphas:
        vectors = np.linalg.eigh(fore - alpha * back)[1][:, ::-1][:, :count]
        found.append(vectors * np.sign(vectors[np.abs(vectors).argmax(axis=0), range(count)]))
    return np.array(found)


def covariances_of_variables(X, Y, ddof=1):
    """Covariances over all variables, however few the rows are."""
    return [(central(rows).T @ central(rows)) / (len(rows) - ddof) for rows in (X, Y)]


def held_out_losses(rows, part, patterns, amounts):
    """log variance of filters on every held-out part, one pattern after another: [part, amount]."""
    found = []
    for k in range(max(part) + 1):
        kept = [row for row, own in zip(rows, part, strict=True) if own != k]
        mean = sum(kept) / len(kept)
        C = sum(np.outer(row - mean, row - mean) for row in kept) / len(kept)
        losses = []
        for amount in amounts:
            S = C.copy()
            for i in range(len(S)):
                for j in range(len(S)):
                    if i != j:
                        S[i, j] *= 1 - amount
            logs = []
            for b in patterns.T:
                f = np.linalg.solve(S, b)
                f = f / (b @ f)
                tested = [
                    (f @ (row - mean)) ** 2 for row, own in zip(rows, part, strict=True) if own == k
                ]
                logs.append(np.log(sum(tested) / len(tested)))
            losses.append(sum(logs) / len(logs))
        found.append(losses)
    return np.array(found)


def groups_like_foreground(above, below, own, behind, n_errors=2):
    """Background groups whose mean square is nearer to the foreground's than to the other groups'."""
    found = []
    for j in range(len(behind.names)):
        inside, others = behind.codes == j, [k for k in range(len(behind.names)) if k != j]
        mean = below[~inside].mean()
        level = np.mean([np.mean((below[behind.codes == k] - mean) ** 2) for k in others])
        beyond = np.mean((above - mean) ** 2)
        if own is not None:
            parts = [above[own.codes == k] for k in range(len(own.names))]
            beyond = np.mean([np.mean((part - mean) ** 2) for part in parts])
        squares = (below[inside] - mean) ** 2
        error = squares.std(ddof=1) / squares.size**0.5
        if squares.mean() - n_errors * error > np.sqrt(level * max(beyond, level)):
            found.append(j)
    return found
