#include "stagecraft/compiler/shapes/output_rows.h"

#include <algorithm>
#include <numeric>
#include <optional>
#include <string>

#include <ATen/core/grad_mode.h>
#include <ATen/ops/allclose.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/view_as_real.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "stagecraft/base/error.h"
#include "stagecraft/compiler/capture/capture.h"
#include "stagecraft/compiler/stage/probe.h"

namespace stagecraft {
namespace {

using Sizes = std::vector<std::int64_t>;

/// Returns the module's outputs for these inputs; nothing if it does not take them.
std::optional<Tensors> outputs_for(const Workload& workload, const Tensors& inputs) {
  try {
    return run_eagerly(workload, inputs, {}, kProbeKey, EagerPass::Forward).outputs;
  } catch (const Error&) {
    return std::nullopt;
  }
}

/// Returns the inputs with every one that has rows changed by `change`.
template <class Change>
Tensors with_rows(const FirstPart& part, Change&& change) {
  Tensors inputs;
  for (std::size_t i = 0; i < part.inputs.size(); ++i) {
    const at::Tensor& input = part.inputs[i];
    inputs.push_back(part.input_slices[i].replicated ? input : change(input));
  }
  return inputs;
}

/// Returns the largest number such that every input has a whole number of rows per unit; 0 if none
/// has rows.
std::int64_t rows_of(const FirstPart& part) {
  std::int64_t rows = 0;
  for (const BatchSlice& slice : part.input_slices) {
    rows = slice.replicated ? rows : std::gcd(rows, slice.sizes[0]);
  }
  return rows;
}

/// Divides the dimension into `blocks` equal blocks and returns the tensor with them in reverse
/// order. Requires: they divide it.
at::Tensor reversed(const at::Tensor& tensor, std::int64_t dim, std::int64_t blocks) {
  const std::int64_t size = tensor.size(dim) / blocks;
  Tensors parts;
  for (std::int64_t b = blocks; b-- > 0;) {
    parts.push_back(tensor.narrow(dim, b * size, size));
  }
  return at::cat(parts, dim);
}

/// Returns whether two outputs differ by rounding at most: kernels compute a row in another way at
/// another place.
bool are_alike(const at::Tensor& a, const at::Tensor& b) {
  constexpr double kRounding = 1e-2;  // of the largest element, in any type
  if (!a.is_floating_point() && !a.is_complex()) {
    return a.equal(b);
  }
  const auto numbers = [](const at::Tensor& t) {
    return (t.is_complex() ? at::view_as_real(t.resolve_conj()) : t).to(at::kDouble);
  };
  const at::Tensor x = numbers(a);
  const double largest =
      x.numel() == 0 ? 0.0 : x.nan_to_num(0.0, 0.0, 0.0).abs().max().item().toDouble();
  return at::allclose(x, numbers(b), 0.0, kRounding * largest, /*equal_nan=*/true);
}

[[noreturn]] void refuse_output(std::size_t output, const Sizes& sizes, const std::string& why) {
  throw Error(Errc::CompileShape,
              fmt::format("output {} of the module has shape [{}] for a microbatch{}, so predict() "
                          "cannot tell in which dimension to concatenate microbatches: return it "
                          "with a dimension of rows, or leave it out in evaluation mode",
                          output,
                          fmt::join(sizes, ", "),
                          why));
}

/// FixedRows finds the dimensions of a module that takes one number of rows only. If several
/// dimensions divide by that number, it runs the module on the rows in reverse order: the blocks of
/// the right dimension are then in reverse order too.
class FixedRows {
 public:
  FixedRows(const Workload& workload, const FirstPart& part, std::int64_t rows)
      : workload_(workload), part_(part), rows_(rows) {}

  std::int64_t dimension_of(std::size_t output, const Sizes& sizes) {
    std::vector<std::int64_t> dividing;
    for (std::size_t d = 0; d < sizes.size(); ++d) {
      if (sizes[d] % rows_ == 0) {
        dividing.push_back(static_cast<std::int64_t>(d));
      }
    }
    if (dividing.empty()) {
      refuse_output(output, sizes, rows_text());
    }
    if (dividing.size() == 1) {
      return dividing.front();
    }
    if (rows_ == 1) {
      return dimension_of_one_row(output, sizes);
    }
    const std::vector<std::int64_t> following = that_follow_rows(output, dividing);
    if (following.size() != 1) {
      refuse_output(output,
                    sizes,
                    fmt::format("{}, and {} the order of the rows",
                                rows_text(),
                                following.empty() ? "no dimension follows"
                                                  : fmt::format("the dimensions {} all follow",
                                                                fmt::join(following, ", "))));
    }
    return following.front();
  }

 private:
  [[nodiscard]] std::string rows_text() const {
    return fmt::format(" of {} row{}", rows_, rows_ == 1 ? "" : "s");
  }

  /// One row has no other order. Its dimension has size 1, the first one if there are several.
  [[nodiscard]] std::int64_t dimension_of_one_row(std::size_t output, const Sizes& sizes) const {
    const auto one = std::ranges::find(sizes, 1);
    if (one == sizes.end()) {
      refuse_output(output, sizes, rows_text() + ", and no dimension of size 1");
    }
    return one - sizes.begin();
  }

  std::vector<std::int64_t> that_follow_rows(std::size_t output,
                                             const std::vector<std::int64_t>& dimensions) {
    run_both();
    std::vector<std::int64_t> found;
    for (const std::int64_t d : dimensions) {
      if (forwards_ && backwards_ &&
          are_alike(reversed((*forwards_)[output], d, rows_), (*backwards_)[output])) {
        found.push_back(d);
      }
    }
    return found;
  }

  void run_both() {
    if (!ran_) {
      forwards_ = outputs_for(workload_, part_.inputs);
      backwards_ = outputs_for(
          workload_, with_rows(part_, [&](const at::Tensor& t) { return reversed(t, 0, rows_); }));
      ran_ = true;
    }
  }

  const Workload& workload_;
  const FirstPart& part_;
  const std::int64_t rows_;
  bool ran_ = false;
  std::optional<Tensors> forwards_, backwards_;  ///< the outputs for both orders of the rows
};

/// Returns the first dimension that doubles with the rows.
std::int64_t doubled_dimension(std::size_t output, const Sizes& once, const Sizes& twice) {
  for (std::size_t d = 0; d < std::min(once.size(), twice.size()); ++d) {
    if (twice[d] == 2 * once[d]) {
      return static_cast<std::int64_t>(d);
    }
  }
  refuse_output(
      output, once, fmt::format(" and [{}] for one of twice the rows", fmt::join(twice, ", ")));
}

}  // namespace

std::vector<std::int64_t> row_dimensions(const Workload& workload,
                                         const Graph& graph,
                                         const FirstPart& part) {
  const std::int64_t rows = rows_of(part);
  std::vector<std::int64_t> dimensions(graph.outputs.size(), 0);
  if (rows == 0) {
    return dimensions;
  }
  const at::NoGradGuard no_grad;
  const std::optional<Tensors> twice =
      outputs_for(workload, with_rows(part, [](const at::Tensor& t) {
                    return at::cat({t, t}, 0);
                  }));
  FixedRows fixed(workload, part, rows);
  for (std::size_t i = 0; i < dimensions.size(); ++i) {
    const Sizes& sizes = graph.at(graph.outputs[i]).sizes;
    if (!sizes.empty()) {
      dimensions[i] = twice ? doubled_dimension(i, sizes, (*twice)[i].sizes().vec())
                            : fixed.dimension_of(i, sizes);
    }
  }
  return dimensions;
}

}  // namespace stagecraft
