/// Holds a source of batches for local_source_test.cc and the workers that it starts. It does the
/// work of data() without a model.
#pragma once

#include <atomic>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>

#include "stagecraft/actors/data/local_source.h"
#include "stagecraft/base/error.h"

namespace stagecraft::tests {

inline constexpr const char* kNumbered = "numbered";

/// Returns batch `number`, twelve tokens and their classes.
inline LabeledBatch numbered_batch(std::int64_t number) {
  const at::Tensor tokens = (at::arange(12) * 7 + number * 5 + 3).remainder(16);
  return {{tokens}, {tokens.remainder(3)}};
}

/// `how`: "whole" batches; in "parts" that contain only what is asked for; a source that "breaks"
/// at its second batch; or one whose batches are too "short" or of "floats".
class NumberedSource final : public StepSource {
 public:
  explicit NumberedSource(std::string how) : how_(std::move(how)) {
    if (how_ == "nowhere") {
      throw Error(Errc::UsageFile, "there is no file 'nowhere'; put it there");
    }
    ++made;
  }

  LabeledBatch batch(std::int64_t number) override {
    if (how_ == "breaks" && number == 1) {
      throw std::runtime_error("the disk is gone");
    }
    LabeledBatch whole = numbered_batch(number);
    if (how_ == "short") {
      whole.inputs[0].tensor = whole.inputs[0].tensor.narrow(0, 0, 8);
    }
    if (how_ == "floats") {
      whole.inputs[0].tensor = whole.inputs[0].tensor.to(at::kFloat);
    }
    return whole;
  }

  std::optional<LabeledBatch> part(const BatchPart& part) override {
    if (how_ != "parts") {
      return std::nullopt;
    }
    LabeledBatch whole = numbered_batch(part.batch);
    const auto rows_of = [&](Batch& side, bool wanted) {
      const at::Tensor& all = side[0].tensor;
      const std::int64_t rows = all.size(0) / part.microbatches;
      return wanted ? Batch{all.narrow(0, part.microbatch * rows, rows)} : Batch{};
    };
    ++parts_read;
    return LabeledBatch{rows_of(whole.inputs, part.inputs), rows_of(whole.labels, part.labels)};
  }

  static inline std::atomic<int> made{0}, parts_read{0};  // in this process

 private:
  const std::string how_;
};

inline void register_numbered_source() {
  register_source(kNumbered, [](const std::string& how) -> std::unique_ptr<StepSource> {
    return std::make_unique<NumberedSource>(how);
  });
}

}  // namespace stagecraft::tests
