/// TextWork is the shared part of the works of language models: the windows of a text.
#pragma once

#include "stagecraft/tools/train/work/byte_text.h"
#include "stagecraft/tools/train/work/model_work.h"

namespace stagecraft::tools {

class TextWork : public ModelWork {
 public:
  /// Reads the text. `most`: bytes that it may take. Errors: those of ByteText::read.
  TextWork(const WorkRequest& request, double most);

  [[nodiscard]] std::optional<std::int64_t> tokens(const WorkShape& shape) const override;

 protected:
  [[nodiscard]] WorkBatch draw(std::int64_t step, std::int64_t samples) const override;
  [[nodiscard]] std::int64_t sequence() const { return size("seq"); }
  /// Returns the bytes of tokens and targets of an example.
  [[nodiscard]] double example_bytes() const;

  const ByteText text_;
};

}  // namespace stagecraft::tools
