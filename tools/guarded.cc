#include "stagecraft/tools/guarded.h"

#include <ostream>
#include <utility>

#include <fmt/format.h>

namespace stagecraft::tools {

decltype(SubCommand::run) thrifty(decltype(SubCommand::run) run,
                                  const std::string& appetite,
                                  LackOfMemory lack) {
  return [command = std::move(run), less = "to need less memory, reduce: " + appetite, lack](
             const std::vector<std::string>& words, Console& console) {
    try {
      return command(words, console);
    } catch (const Error& error) {
      if (error.code() == Errc::DeviceOutOfMemory) {
        throw Error(error.code(), fmt::format("{}\n{}", error.what(), less));
      }
      throw;
    } catch (const std::exception& error) {
      if (const auto lacking = lack(error, less)) {
        throw Error(*lacking);
      }
      throw;
    }
  };
}

ExitCode guarded(const std::function<ExitCode()>& command, Console& console) {
  try {
    return command();
  } catch (const Error& error) {
    console.err << "stagecraft: " << error.what() << '\n';
    return exit_code(error);
  } catch (const std::exception& error) {
    console.err << "stagecraft: unexpected error: " << error.what()
                << "\nThis is a bug in Stagecraft; please report it together with the command.\n";
    return ExitCode::Failed;
  }
}

}  // namespace stagecraft::tools
