#include "stagecraft/tools/train/run/reader_watch.h"

#include <ostream>
#include <utility>

#include <fmt/format.h>

#include "stagecraft/tools/train/run/run_files.h"

namespace stagecraft::tools {

bool ReaderWatch::worth_going_on(std::int64_t step) {
  if (output_.failure().empty()) {
    return true;
  }
  if (kept_by(options_) == nullptr) {
    return false;
  }
  report(step, /*more=*/true);
  return true;
}

void ReaderWatch::report(std::int64_t step, bool more) {
  if (output_.failure().empty() || std::exchange(reported_, true)) {
    return;
  }
  const std::string* file = kept_by(options_);
  console_.err << fmt::format("stagecraft: {}; the run {}\n",
                              output_.failure(),
                              file != nullptr && more
                                  ? fmt::format("continues for '{}' and exits with 2", *file)
                              : step == 0 ? "ended before its first step"
                                          : fmt::format("ended after step {}", step))
               << std::flush;
}

}  // namespace stagecraft::tools
