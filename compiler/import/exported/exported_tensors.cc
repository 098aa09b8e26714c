#include "stagecraft/compiler/import/exported/exported_tensors.h"

#include <algorithm>
#include <cstdint>
#include <optional>

#include <ATen/ops/empty.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "stagecraft/compiler/libtorch/type_text.h"

namespace stagecraft::exported {
namespace {

constexpr std::uint64_t kMostRepeated = 64ULL << 20;

bool same(const TensorFacts& a, const TensorFacts& b) {
  return a.dtype == b.dtype && a.sizes == b.sizes && a.strides == b.strides &&
         a.storage_offset == b.storage_offset && a.requires_grad == b.requires_grad;
}

/// Returns nothing if the sum or product exceeds 64 bits.
std::optional<std::uint64_t> sum(std::optional<std::uint64_t> a, std::uint64_t b) {
  std::uint64_t result = 0;
  return !a || __builtin_add_overflow(*a, b, &result) ? std::nullopt : std::optional(result);
}
std::optional<std::uint64_t> product(std::optional<std::uint64_t> a, std::uint64_t b) {
  std::uint64_t result = 0;
  return !a || __builtin_mul_overflow(*a, b, &result) ? std::nullopt : std::optional(result);
}

/// Returns how the tensor breaks ET-2, as the end of a sentence; empty if it does not.
std::string why_outside(const TensorFacts& facts, std::uint64_t bytes) {
  std::optional<std::uint64_t> count = 1;
  std::optional<std::uint64_t> last = static_cast<std::uint64_t>(facts.storage_offset);
  for (std::size_t i = 0; i < facts.sizes.size(); ++i) {
    const auto size = static_cast<std::uint64_t>(facts.sizes[i]);
    count = product(count, size);
    if (size > 0) {
      last =
          sum(last, product(size - 1, static_cast<std::uint64_t>(facts.strides[i])).value_or(-1));
    }
  }
  if (count == 0U) {
    return {};
  }
  const std::uint64_t item = c10::elementSize(facts.dtype);
  const auto end = product(sum(last, 1), item);
  const auto shown = product(count, item);
  if (!end || *end > bytes) {
    return "reaches beyond its record";
  }
  if (!shown || (*shown > bytes && *shown > kMostRepeated)) {
    return fmt::format("repeats the bytes of its record beyond {}", kMostRepeated);
  }
  return {};
}

}  // namespace

at::Tensor ExportedTensors::take(const std::string& fqn) {
  const auto found = payloads_.find(fqn);
  if (found == payloads_.end()) {
    archive_.refuse(fmt::format("the program names {}, but {} has no such tensor", fqn, folder_));
  }
  const auto& [record, is_parameter, pickled, facts] = found->second;
  if (pickled) {
    archive_.refuse(fmt::format(
        "{} is pickled, as subclasses of Tensor are; only plain tensors can be read: export the "
        "model with those",
        fqn));
  }
  if (!facts.strided) {
    archive_.refuse(fmt::format("{} is not dense; make it dense before exporting", fqn));
  }
  if (facts.sizes.size() != facts.strides.size()) {
    archive_.refuse(fmt::format(
        "{} has {} sizes and {} strides", fqn, facts.sizes.size(), facts.strides.size()));
  }
  const auto unknown = [](const std::vector<std::int64_t>& numbers) {
    return std::find(numbers.begin(), numbers.end(), kUnknownSize) != numbers.end();
  };
  if (unknown(facts.sizes) || unknown(facts.strides) || facts.storage_offset == kUnknownSize) {
    archive_.refuse(fmt::format("{} has a symbolic size; a stored tensor has numbers", fqn));
  }
  std::vector<Made>& made = made_[record];
  for (const Made& m : made) {
    if (same(m.facts, facts)) {
      return m.tensor;  // keeps ET-1
    }
  }
  auto storage = storages_.find(record);
  if (storage == storages_.end()) {
    storage = storages_.emplace(record, archive_.storage(folder_ + record)).first;
  }
  if (const std::string why = why_outside(facts, storage->second.nbytes()); !why.empty()) {
    archive_.refuse(
        fmt::format("{}, {} of shape [{}] (strides [{}], offset {}), {}: {} has {} bytes",
                    fqn,
                    type_text(facts.dtype),
                    fmt::join(facts.sizes, ", "),
                    fmt::join(facts.strides, ", "),
                    facts.storage_offset,
                    why,
                    folder_ + record,
                    storage->second.nbytes()));
  }
  at::Tensor tensor = at::empty({0}, at::TensorOptions().dtype(facts.dtype));
  tensor.set_(storage->second, facts.storage_offset, facts.sizes, facts.strides);
  if (is_parameter && facts.requires_grad) {
    if (!at::isFloatingType(facts.dtype) && !at::isComplexType(facts.dtype)) {
      archive_.refuse(fmt::format(
          "{} must not require a gradient, which {} cannot have", fqn, type_text(facts.dtype)));
    }
    tensor.requires_grad_(true);
  }
  made.push_back({facts, tensor});
  return tensor;
}

}  // namespace stagecraft::exported
