#include "stagecraft/tests/tools/schedule_run.h"

#include <sstream>

#include "stagecraft/base/error.h"
#include "stagecraft/tests/support/catch.h"
#include "stagecraft/tools/exit_code.h"
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
  std::istringstream in(input);
  std::ostringstream out;
  std::ostringstream err;
  tools::Console console{in, out, err, screen.terminal, screen.colour, screen.width};
  CommandResult result;
  try {
    result.exit_code = static_cast<int>(tools::schedule(words, console));
  } catch (const Error& error) {
    err << "stagecraft: " << error.what() << '\n';
    result.exit_code = static_cast<int>(tools::exit_code(error));
  }
  result.out = out.str();
  result.err = err.str();
  return result;
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

void check_message(const CommandResult& result,
                   int exit_code,
                   const std::vector<std::string>& parts) {
  CAPTURE(result.out, result.err);
  CHECK(result.exit_code == exit_code);
  CHECK(result.out.empty());
  CHECK(result.err.starts_with("stagecraft: "));
  CHECK(result.err.find('\n') == result.err.size() - 1);
  for (const std::string& part : parts) {
    CHECK_THAT(result.err, Catch::Matchers::ContainsSubstring(part));
  }
}

}  // namespace stagecraft::tests
