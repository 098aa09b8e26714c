#include "stagecraft/tools/train/work.h"

#include "stagecraft/tools/train/file_work.h"
#include "stagecraft/tools/train/text_work.h"

namespace stagecraft::tools {

std::unique_ptr<Work> open_work(const TrainOptions& options, double most) {
  if (options.model_file) {
    return std::make_unique<FileWork>(options, most);
  }
  return std::make_unique<TextWork>(options, most);
}

}  // namespace stagecraft::tools
