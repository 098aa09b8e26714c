/// The runtime's program: the commands that need LibTorch or the cluster. `stagecraft` becomes it
/// for one of their words, so that all other commands start without them. Workers run it directly.

#include <cstdlib>
#include <ostream>
#include <string>
#include <vector>

#include "stagecraft/tools/common/console.h"
#include "stagecraft/tools/memory_abort.h"
#include "stagecraft/tools/runtime_commands.h"

int main(int argc, char** argv) {
  using namespace stagecraft::tools;
  tell_lack_of_memory_at_abort();
  Console console = process_console();
  const ExitCode code = run_runtime_command({argv + 1, argv + argc}, console);
  console.out.flush();
  console.err.flush();
  // Destroying LibTorch's static objects would take 0.1 s, a third of a short command.
  std::_Exit(static_cast<int>(code));
}
