#include "stagecraft/compiler/fuse/block_domain.h"

#include <algorithm>
#include <functional>
#include <numeric>

#include <ATen/Parallel.h>
#include <ATen/TensorIterator.h>
#include <c10/util/accumulate.h>

namespace stagecraft {
namespace {

// A handful of values of a block lie in a second-level cache of 1 MiB together.
constexpr std::int64_t kBlockElements = 16 * 1024;
// A whole number of vectors of every processor, as often as kernels unroll their loops.
constexpr std::int64_t kVectors = 64;

/// Whether LibTorch's threads share the elements of one operator at whole vectors.
bool threads_begin_at_vectors(std::int64_t elements) {
  const std::int64_t threads =
      std::min<std::int64_t>(at::get_num_threads(), at::divup(elements, at::internal::GRAIN_SIZE));
  return threads <= 1 || at::divup(elements, threads) % kVectors == 0;
}

void choose_extent(BlockDomain& domain) {
  const std::int64_t step = kVectors / std::gcd(domain.columns, kVectors);
  const std::int64_t wanted =
      std::max(step, kBlockElements / domain.columns / step * step);  // rows
  domain.extent.assign(domain.rows.size(), 1);
  std::int64_t inner = 1;
  bool whole = true;
  for (auto d = domain.order.rbegin(); whole && d != domain.order.rend(); ++d) {
    domain.split = *d;
    const std::int64_t size = domain.rows[*d];
    const std::int64_t part = step / std::gcd(inner, step);
    whole = inner * size <= wanted;
    domain.extent[*d] = whole ? size : std::min(size, std::max(part, wanted / inner / part * part));
    if (whole) {
      inner *= size;
    }
  }
  const std::int64_t rows = c10::multiply_integers(domain.rows);
  const bool outermost =
      whole || domain.split == domain.order.front() || inner * domain.rows[domain.split] == rows;
  domain.aligned = (outermost || inner * domain.rows[domain.split] % step == 0) &&
                   threads_begin_at_vectors(rows * domain.columns);
}

}  // namespace

std::int64_t BlockDomain::chunks() const {
  return at::divup(rows[split], extent[split]);
}

std::int64_t BlockDomain::blocks() const {
  std::int64_t count = chunks();
  for (std::size_t d = 0; d < rows.size(); ++d) {
    count *= d == split ? 1 : rows[d] / extent[d];
  }
  return count;
}

bool BlockDomain::takes(const TensorFacts& value) const {
  if (value.sizes.size() > rows.size() + 1) {
    return false;
  }
  const std::size_t missing = rows.size() + 1 - value.sizes.size();
  for (std::size_t d = 0; d + 1 < value.sizes.size(); ++d) {
    if (value.sizes[d] != 1 && value.sizes[d] != rows[d + missing]) {
      return false;
    }
  }
  return true;
}

bool BlockDomain::fills(const TensorFacts& value) const {
  return value.sizes.size() == rows.size() + 1 &&
         std::equal(rows.begin(), rows.end(), value.sizes.begin());
}

std::vector<std::int64_t> BlockDomain::dense_strides(const std::vector<std::int64_t>& sizes) const {
  std::vector<std::int64_t> strides(sizes.size(), 1);
  std::int64_t next = sizes.back();
  for (auto d = order.rbegin(); d != order.rend(); ++d) {
    strides[*d] = next;
    next *= sizes[*d];
  }
  return strides;
}

std::optional<BlockDomain> domain_of(const Trace& trace) {
  const TensorFacts* largest = nullptr;
  std::int64_t elements = 0;
  for (const TensorFacts& value : trace.values) {
    const std::int64_t numel = c10::multiply_integers(value.sizes);
    if (value.sizes.size() >= 2 && numel > elements) {
      largest = &value;
      elements = numel;
    }
  }
  if (largest == nullptr) {
    return std::nullopt;
  }
  BlockDomain domain{.rows = {largest->sizes.begin(), largest->sizes.end() - 1},
                     .columns = largest->sizes.back(),
                     .order = {},
                     .extent = {},
                     .split = 0,
                     .aligned = false};
  domain.order.resize(domain.rows.size());
  std::iota(domain.order.begin(), domain.order.end(), 0);
  std::ranges::stable_sort(
      domain.order, std::greater<>(), [&](std::size_t d) { return largest->strides[d]; });
  choose_extent(domain);
  return domain;
}

}  // namespace stagecraft
