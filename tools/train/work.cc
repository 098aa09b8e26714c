#include "stagecraft/tools/train/work.h"

#include "stagecraft/tools/train/file_work.h"
#include "stagecraft/tools/train/models.h"

namespace stagecraft::tools {

std::unique_ptr<Work> open_work(const TrainOptions& options, double most) {
  if (options.model_file) {
    return std::make_unique<FileWork>(options, most);
  }
  return find_model(options.model).open(options, most);
}

}  // namespace stagecraft::tools
