/// WorkShape says how the work of a step is divided: into stages, and into microbatches.
///
/// A schedule decides most of it, but a Work needs to know no more than this.
#pragma once

#include <cstdint>
#include <optional>

#include "stagecraft/compiler/cut/cut.h"

namespace stagecraft::tools {

/// The microbatches of a step, and the samples of one, if nothing states them.
inline constexpr int kUsualMicrobatches = 8;
inline constexpr std::int64_t kUsualMicrobatchSize = 4;

struct WorkShape {
  int stages = 1;  ///< of the model; a schedule of two replicas has twice as many
  int microbatches = 1;
  std::int64_t microbatch_size = 1;  ///< samples; whole microbatches have their own
  std::optional<Cut> cut;            ///< none: the work's own

  /// Returns how many stages the model's own markers must make.
  [[nodiscard]] int marked_stages() const { return cut ? 1 : stages; }

  /// Returns the shape of an uncut model.
  [[nodiscard]] static WorkShape uncut(int microbatches, std::int64_t microbatch_size) {
    return {.microbatches = microbatches, .microbatch_size = microbatch_size, .cut = At()};
  }
};

}  // namespace stagecraft::tools
