#include "stagecraft/tools/train/catalog/open_work.h"

#include "stagecraft/tools/train/catalog/models.h"
#include "stagecraft/tools/train/work/file_work.h"

namespace stagecraft::tools {

std::unique_ptr<Work> open_work(const WorkRequest& request, double most) {
  if (request.model.file) {
    return std::make_unique<FileWork>(request, most);
  }
  return find_model(request.model.name).open(request, most);
}

}  // namespace stagecraft::tools
