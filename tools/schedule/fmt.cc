/// `stagecraft schedule fmt`
#include <map>
#include <sstream>
#include <string>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "stagecraft/base/error.h"
#include "stagecraft/scheduler/formats/registry.h"
#include "stagecraft/tools/common/command_line.h"
#include "stagecraft/tools/common/files_apart.h"
#include "stagecraft/tools/common/output.h"
#include "stagecraft/tools/schedule/commands.h"
#include "stagecraft/tools/schedule/input/format.h"
#include "stagecraft/tools/schedule/input/input.h"

namespace stagecraft::tools {
namespace {

/// The comments of a text: those before each row, and those after it.
struct Comments {
  std::map<std::size_t, std::string> before;
  std::map<std::size_t, std::string> behind;
};

Comments comments_of(const std::string& text) {
  Comments comments;
  std::istringstream lines(text);
  std::size_t row = 0;
  for (std::string line; std::getline(lines, line);) {
    line.erase(line.find_last_not_of(" \t\r") + 1);
    const std::size_t first = line.find_first_not_of(" \t");
    const std::size_t hash = line.find('#');
    const bool is_row = first != std::string::npos && line[first] != '#' && line[first] != '@';
    if (hash != std::string::npos) {
      (is_row ? comments.behind[row] = "  " : comments.before[row]) +=
          line.substr(hash) + (is_row ? "" : "\n");
    }
    row += is_row ? 1 : 0;
  }
  return comments;
}

/// Returns the text with the comments of the original: first those before all rows, then the
/// headers, then the rows with theirs.
std::string with_comments(const std::string& text, Comments comments) {
  std::string out = comments.before[0];
  comments.before.erase(0);
  std::istringstream lines(text);
  std::size_t row = 0;
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with('@')) {
      out += line + '\n';
      continue;
    }
    out += comments.before[row] + line + comments.behind[row] + '\n';
    ++row;
  }
  return out + comments.before[row];
}

std::string canonical(const ScheduleFile& file) {
  const ScheduleFormat& format = *file.format;
  if (!file.communication.empty()) {
    throw Error(
        Errc::UsageFile,
        fmt::format("{} lists communication in an order of its own; convert --to {} lays it "
                    "out again",
                    file.name,
                    communication_format()));
  }
  if (!file.left_out.empty()) {
    throw Error(Errc::UsageFile,
                fmt::format("{} also holds {}, which fmt would lose; convert --to {} leaves this "
                            "out",
                            file.name,
                            file.left_out,
                            format.name));
  }
  return format.comments ? with_comments(to_string(file.schedule), comments_of(file.text))
                         : write_schedule(file.schedule, file.graph, format);
}

}  // namespace

ExitCode format_schedule(const Words& words, Console& console) {
  std::string path;
  ReadOptions read;
  std::string output;
  CLI::App app("Rewrites a schedule in the usual layout of its own format.",
               "stagecraft schedule fmt");
  app.footer(
      "Aligns cells in columns, leaves out redundant headers, and keeps comments. The result can "
      "replace the file.\n"
      "Exit status: 0 rewritten, even if the schedule cannot run; 2 wrong usage, a file that "
      "cannot be read or would lose something, or output that cannot be written.\n"
      "Example: stagecraft schedule fmt plan.txt -o plan.txt");
  add_file_argument(app, path);
  add_read_options(app, read);
  app.add_option("-o,--output", output, "file to write [standard output]")->type_name("FILE");
  if (const auto help = parse_command_line(app, words)) {
    write_output("", *help, console);
    return ExitCode::Good;
  }
  check_all_apart(files_read("", read), {{"--output", output}});  // may replace FILE
  read.strict = true;  // an array must not become a list here
  const ScheduleFile file = read_schedule(path, read, console);
  write_output(output, canonical(file), console);
  return ExitCode::Good;
}

}  // namespace stagecraft::tools
