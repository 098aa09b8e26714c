#include "stagecraft/tools/train/work/work.h"

#include <algorithm>
#include <utility>

#include "stagecraft/compiler/graph/autocast_guard.h"

namespace stagecraft::tools {
namespace {

class EvaluationSource final : public BatchSource {
 public:
  EvaluationSource(const Work& work, const WorkShape& shape) : work_(work), shape_(shape) {}

  void begin_epoch() override { next_ = 0; }

  std::optional<LabeledBatch> next() override {
    if (next_ == work_.evaluation_batches(shape_)) {
      return std::nullopt;
    }
    WorkBatch batch = work_.evaluation(next_++, shape_);
    return LabeledBatch{std::move(batch.inputs), std::move(batch.labels)};
  }

 private:
  const Work& work_;
  const WorkShape shape_;
  std::int64_t next_ = 0;
};

}  // namespace

std::unique_ptr<BatchSource> evaluation_source(const Work& work, const WorkShape& shape) {
  return std::make_unique<EvaluationSource>(work, shape);
}

const std::vector<std::pair<std::string, Precision>>& precision_words() {
  static const std::vector<std::pair<std::string, Precision>> kWords{
      {"fp32", Precision::Float32}, {"bf16", Precision::BFloat16}, {"fp16", Precision::Float16}};
  return kWords;
}

std::string word_of(Precision precision) {
  return std::ranges::find(precision_words(), precision, &std::pair<std::string, Precision>::second)
      ->first;
}

Autocast autocast_of(Precision precision) {
  return {.enabled = precision != Precision::Float32,
          .dtype = precision == Precision::Float16 ? at::kHalf : at::kBFloat16};
}

std::optional<LossScaling> loss_scaling_of(Precision precision) {
  return precision == Precision::Float16 ? std::optional(LossScaling{}) : std::nullopt;
}

Program compile_in(Precision precision, Work& work, const WorkShape& shape) {
  const AutocastGuard autocast;
  AutocastGuard::set(autocast_of(precision));
  return work.compile(shape);
}

}  // namespace stagecraft::tools
