#include "stagecraft/compiler/import/model_text.h"

#include "stagecraft/compiler/import/exported/exported_program.h"

namespace stagecraft {

std::string names_of(const std::vector<ModelTensor>& tensors) {
  std::string names;
  for (const ModelTensor& tensor : tensors) {
    names += (names.empty() ? "" : ", ") + tensor.name;
  }
  return names;
}

std::string shape_text(const std::vector<std::int64_t>& sizes) {
  std::string text;
  for (const std::int64_t size : sizes) {
    text += (text.empty() ? "" : ", ") +
            (size == exported::kUnknownSize ? std::string("?") : std::to_string(size));
  }
  return "[" + text + "]";
}

}  // namespace stagecraft
