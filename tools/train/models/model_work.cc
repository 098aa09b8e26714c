#include "stagecraft/tools/train/models/model_work.h"

#include <algorithm>

#include <fmt/format.h>

#include "stagecraft/base/error.h"
#include "stagecraft/compiler/tensor_files/weights.h"
#include "stagecraft/tools/train/models/llama_size.h"

namespace stagecraft::tools {
namespace {

constexpr std::int64_t kDefaultLayers = 4;

}  // namespace

std::int64_t ModelWork::layers(int stages) const {
  if (!options_.sizes.has("layers")) {
    return std::max<std::int64_t>(kDefaultLayers, stages);
  }
  const std::int64_t asked = options_.sizes.whole("layers");
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
                              const ScheduleChoice& choice) const {
  return {.parameters = weights,
          .description = layers * kBytesToDescribeALayer,
          .microbatch = activations,
          .batch = example * static_cast<double>(options_.microbatch_size) *
                   static_cast<double>(choice.microbatches)};
}

void ModelWork::load_asked_weights(const std::vector<NamedTensor>& parameters,
                                   const std::vector<NamedTensor>& buffers) const {
  if (options_.load_weights) {
    load_weights(*options_.load_weights, read_weights(*options_.load_weights), parameters, buffers);
  }
}

}  // namespace stagecraft::tools
