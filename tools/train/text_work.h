/// TextWork: a small Llama and the windows of a text.
#pragma once

#include "stagecraft/examples/models/llama_options.h"
#include "stagecraft/tools/byte_text.h"
#include "stagecraft/tools/train/work.h"

namespace stagecraft::tools {

class TextWork : public Work {
 public:
  /// Reads the text. Errors: those of ByteText::read.
  TextWork(const TrainOptions& options, double most);

  [[nodiscard]] TrainOptions settled(const TrainOptions& options) const override;
  [[nodiscard]] WorkBytes bytes(const ScheduleChoice& choice) const override;
  [[nodiscard]] Program compile(const ScheduleChoice& choice) override;
  [[nodiscard]] WorkBatch batch(std::int64_t step, const ScheduleChoice& choice) const override;
  [[nodiscard]] WorkBatch evaluation(const ScheduleChoice& choice) const override;
  [[nodiscard]] std::optional<std::int64_t> tokens(const ScheduleChoice& choice) const override;

 private:
  /// Errors: UsageArgument for more stages than layers.
  [[nodiscard]] examples::LlamaOptions model(const ScheduleChoice& choice) const;

  const TrainOptions options_;
  const ByteText text_;
};

}  // namespace stagecraft::tools
