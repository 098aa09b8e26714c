/// `stagecraft schedule convert`
#include <string>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "stagecraft/tools/common/command_line.h"
#include "stagecraft/tools/common/files_apart.h"
#include "stagecraft/tools/common/output.h"
#include "stagecraft/tools/schedule/commands.h"
#include "stagecraft/tools/schedule/input/format.h"
#include "stagecraft/tools/schedule/input/input.h"

namespace stagecraft::tools {

ExitCode convert_schedule(const Words& words, Console& console) {
  std::string path;
  ReadOptions read;
  std::string to;
  std::string output;
  CLI::App app("Writes a schedule in another format.", "stagecraft schedule convert");
  app.footer(fmt::format(
      "FORMAT is one of these:\n{}\nIf the format cannot express the schedule, the error names the "
      "first such cell. Communication that a file lists is not copied: {} lays it out again.\n"
      "Exit status: 0 converted, even if the schedule cannot run; 1 its rows do not run to their "
      "end, so a list has no columns for text; 2 wrong usage, a file that cannot be read, a "
      "schedule that the format cannot express, or output that cannot be written.\n"
      "Example: stagecraft schedule convert plan.txt --to pytorch -o plan.csv",
      format_lines(),
      communication_format()));
  add_file_argument(app, path);
  add_read_options(app, read);
  app.add_option("--to", to, "format to write: " + format_names())->required()->type_name("FORMAT");
  app.add_option("-o,--output", output, "file to write [standard output]")->type_name("FILE");
  if (const auto help = parse_command_line(app, words)) {
    write_output("", *help, console);
    return ExitCode::Good;
  }
  const ScheduleFormat& format = format_of(app.get_name(), "--to", to);
  check_all_apart(files_read(path, read), {{"--output", output}});
  const ScheduleFile file = read_schedule(path, read, console);
  write_output(output, write_schedule(file.schedule, file.graph, format), console);
  return ExitCode::Good;
}

}  // namespace stagecraft::tools
