#include "stagecraft/tests/tools/schedule/schedule_run.h"

#include <sstream>

#include "stagecraft/tools/schedule/schedule.h"

namespace stagecraft::tests {
namespace {

std::vector<std::string> words_of(const std::string& text) {
  std::istringstream stream(text);
  std::vector<std::string> words;
  for (std::string word; stream >> word;) {
    words.push_back(word);
  }
  return words;
}

}  // namespace

CommandResult run_schedule(const std::vector<std::string>& words,
                           const std::string& input,
                           const Screen& screen) {
  return run_in_test(&tools::schedule, words, input, screen);
}

CommandResult run_schedule_line(const std::string& line, const std::string& input) {
  CommandResult last;
  last.out = input;
  std::string err;
  for (std::size_t begin = 0; begin != std::string::npos;) {
    const std::size_t bar = line.find(" | ", begin);
    last = run_schedule(words_of(line.substr(begin, bar - begin)), last.out);
    err += last.err;
    begin = bar == std::string::npos ? bar : bar + 3;
  }
  last.err = err;
  return last;
}

}  // namespace stagecraft::tests
