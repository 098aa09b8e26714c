#include "stagecraft/compiler/shapes/output_rows.h"

#include <algorithm>
#include <functional>
#include <numeric>
#include <optional>

#include <ATen/ops/cat.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "stagecraft/base/error.h"
#include "stagecraft/compiler/capture/capture.h"
#include "stagecraft/compiler/stage/probe.h"

namespace stagecraft {
namespace {

using Sizes = std::vector<std::int64_t>;

/// Returns the shapes of the outputs for twice as many rows; nothing if the module does not take
/// them.
std::optional<std::vector<Sizes>> sizes_of_twice(const Workload& workload, const FirstPart& part) {
  Tensors twice;
  for (std::size_t i = 0; i < part.inputs.size(); ++i) {
    const at::Tensor& input = part.inputs[i];
    twice.push_back(part.input_slices[i].replicated ? input : at::cat({input, input}, 0));
  }
  try {
    std::vector<Sizes> sizes;
    for (const at::Tensor& output :
         run_eagerly(workload, twice, {}, kProbeKey, EagerPass::Forward).outputs) {
      sizes.push_back(output.sizes().vec());
    }
    return sizes;
  } catch (const Error&) {
    return std::nullopt;
  }
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

[[noreturn]] void refuse_output(std::size_t output, const Sizes& sizes, const std::string& why) {
  throw Error(Errc::CompileShape,
              fmt::format("output {} of the module has shape [{}] for a microbatch{}, so predict() "
                          "cannot tell in which dimension to put microbatches one after the other: "
                          "return it with a dimension of rows, or not in evaluation mode",
                          output,
                          fmt::join(sizes, ", "),
                          why));
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
  const std::optional<std::vector<Sizes>> twice = sizes_of_twice(workload, part);
  for (std::size_t i = 0; i < dimensions.size(); ++i) {
    const Sizes& sizes = graph.at(graph.outputs[i]).sizes;
    const auto has_rows = [&](std::size_t d) {
      return twice ? d < (*twice)[i].size() && (*twice)[i][d] == 2 * sizes[d]
                   : sizes[d] % rows == 0;
    };
    std::size_t dim = 0;
    while (dim < sizes.size() && !has_rows(dim)) {
      ++dim;
    }
    if (dim == sizes.size() && !sizes.empty()) {
      refuse_output(
          i,
          sizes,
          twice ? fmt::format(" and [{}] for one of twice the rows", fmt::join((*twice)[i], ", "))
                : fmt::format(" of {} rows", rows));
    }
    dimensions[i] = static_cast<std::int64_t>(sizes.empty() ? 0 : dim);
  }
  return dimensions;
}

}  // namespace stagecraft
