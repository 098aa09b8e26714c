#include "stagecraft/tools/train/work/model_work.h"

#include <algorithm>

#include <fmt/format.h>

#include "stagecraft/base/error.h"

namespace stagecraft::tools {
namespace {

constexpr std::int64_t kDefaultLayers = 4;

// Measured on Llamas: bytes that the modules and captured operators of a layer take. They hardly
// depend on the sizes.
constexpr double kBytesToDescribeALayer = 320.0 * 1024;

}  // namespace

std::int64_t ModelWork::layers(int stages) const {
  if (!request_.model.sizes.has("layers")) {
    return std::max<std::int64_t>(kDefaultLayers, stages);
  }
  const std::int64_t asked = size("layers");
  if (stages > asked) {
    throw Error(
        Errc::UsageArgument,
        fmt::format(
            "--layers expects at least {}, one for each of the schedule's stages, found {}; give "
            "more layers, or fewer --ranks or --stages",
            stages,
            asked));
  }
  return asked;
}

WorkBytes ModelWork::bytes_of(double weights,
                              double layers,
                              double activations,
                              double example,
                              const WorkShape& shape) const {
  return {.parameters = weights,
          .description = layers * kBytesToDescribeALayer,
          .microbatch = activations,
          .batch = example * static_cast<double>(shape.microbatch_size) *
                   static_cast<double>(shape.microbatches)};
}

}  // namespace stagecraft::tools
