#include "stagecraft/tests/tools/common/command_run.h"

#include <sstream>

#include "stagecraft/base/error.h"
#include "stagecraft/tests/support/catch.h"

namespace stagecraft::tests {

CommandResult run_in_test(Command command,
                          const std::vector<std::string>& words,
                          const std::string& input,
                          const Screen& screen) {
  std::istringstream in(input);
  std::ostringstream out;
  std::ostringstream err;
  tools::Console console{in, out, err, screen.terminal, screen.color, screen.width};
  CommandResult result;
  try {
    result.exit_code = static_cast<int>(command(words, console));
  } catch (const Error& error) {
    err << "stagecraft: " << error.what() << '\n';
    result.exit_code = static_cast<int>(tools::exit_code(error));
  }
  result.out = out.str();
  result.err = err.str();
  return result;
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
