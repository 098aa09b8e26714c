#include "stagecraft/tools/train/report/run_output.h"

#include "stagecraft/base/error.h"

namespace stagecraft::tools {

void RunOutput::write(std::string_view text) {
  if (!failure_.empty()) {
    return;
  }
  try {
    print(text, console_);
  } catch (const Error& error) {
    failure_ = error.message();
  }
}

}  // namespace stagecraft::tools
