/// check_apart keeps an output of a command from overwriting a file that the command reads, keeps,
/// or also writes.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace stagecraft::tools {

/// An option or argument, as the user knows it, and its file.
using NamedFile = std::pair<std::string, std::string>;

/// Checks that `output` overwrites none of `others`, also behind links, and not the file to which
/// standard output goes. Streams overwrite nothing.
/// Errors: UsageFile, also for an output in a folder that does not exist.
void check_apart(const NamedFile& output, const std::vector<NamedFile>& others);

/// Checks each of `outputs` against `inputs` and the outputs before it. Names that are empty or "-"
/// are no files.
/// Errors: those of check_apart().
void check_all_apart(std::vector<NamedFile> inputs, const std::vector<NamedFile>& outputs);

}  // namespace stagecraft::tools
