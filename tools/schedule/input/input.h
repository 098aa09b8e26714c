/// input reads the input of a schedule command: a schedule file of any format, standard input for
/// "-", and stage edges from a word or a file.
#pragma once

#include <string>
#include <vector>

#include "stagecraft/scheduler/formats/parts/schedule_format.h"
#include "stagecraft/scheduler/model/communication.h"
#include "stagecraft/scheduler/model/schedule.h"
#include "stagecraft/scheduler/model/stage_graph.h"
#include "stagecraft/tools/common/console.h"
#include "stagecraft/tools/common/files_apart.h"

namespace CLI {
class App;
}

namespace stagecraft::tools {

/// ReadOptions says how to read a schedule file.
struct ReadOptions {
  std::string command;  ///< the reading command, for messages
  std::string from;     ///< the format's name; empty: detected from the file
  std::string graph;    ///< "0-1,1-2" or "@FILE"; empty: the file's own, or one chain
  /// If true, the columns must be times. If false, columns that are not times are ignored if the
  /// format allows it, and only the order of rows counts.
  bool strict = false;
};

/// Returns the files that a command with these options reads, for check_all_apart().
[[nodiscard]] std::vector<NamedFile> files_read(const std::string& path,
                                                const ReadOptions& options);

struct ScheduleFile {
  std::string path;              ///< as given: "-" is standard input
  std::string name;              ///< for messages
  std::string text;              ///< as read
  const ScheduleFormat* format;  ///< of the registry
  Schedule schedule;
  StageGraph graph;
  std::vector<CommAction> communication;  ///< in the order of the file
  bool chain_assumed = false;             ///< the format has no stage graph, and no option gave one
  std::string left_out = {};              ///< what the file holds and a schedule does not
};

/// Adds the argument FILE. `path` must outlive the parse. `what`: the file, for the help.
void add_file_argument(CLI::App& app, std::string& path, const std::string& what = "schedule file");
/// Adds --from, --graph and --strict.
void add_read_options(CLI::App& app, ReadOptions& options);

/// Returns the content of a file, or of standard input for "-", up to the size that parsers take.
/// `what` names it in errors: "FILE", "--costs".
/// Errors: UsageFile.
[[nodiscard]] std::string read_source(const std::string& path,
                                      const std::string& what,
                                      Console& console);

/// Returns "standard input" or the path in quotes.
[[nodiscard]] std::string source_name(const std::string& path);

/// Returns the stage graph of a --graph option.
/// Errors: UsageFile for an unreadable file, UsageArgument for text that is no list of edges.
[[nodiscard]] StageGraph read_graph(const std::string& option, Console& console);

/// Reads a schedule. If its columns are not times and its format allows that, it is read as a list,
/// with a note on standard error.
/// Errors: UsageFile; ScheduleParse with file, line, column and cell.
[[nodiscard]] ScheduleFile read_schedule(const std::string& path,
                                         const ReadOptions& options,
                                         Console& console);
/// Does the same for the content of a file that was read (read_source).
[[nodiscard]] ScheduleFile schedule_in(std::string text,
                                       const std::string& path,
                                       const ReadOptions& options,
                                       Console& console);

}  // namespace stagecraft::tools
