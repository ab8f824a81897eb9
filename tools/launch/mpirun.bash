# Completion of mpirun and mpiexec in bash. The mpirun of the command line is
# asked, so that whatever it has is offered: see complete.c.

# The words up to the cursor, and the number of each in COMP_WORDS: bash splits
# at = and :, also where these are parts of a word.
_madmpi_words() {
	local i word rest=${COMP_LINE:0:COMP_POINT}

	words=()
	numbers=()
	for ((i = 0; i <= COMP_CWORD; i++)); do
		if ((i == 0)) || [[ $rest == [[:blank:]]* ]]; then
			rest=${rest#"${rest%%[![:blank:]]*}"}
			words+=("")
			numbers+=("$i")
		fi
		word=${COMP_WORDS[i]}
		((i < COMP_CWORD)) || word=$rest
		words[-1]+=$word
		rest=${rest#"$word"}
	done
}

# The words from the Nth on are a program and its arguments.
_madmpi_program() {
	if declare -F _command_offset >/dev/null; then
		_command_offset "${numbers[$1]}"
		return
	fi
	compopt -o filenames
	if (($1 < ${#words[@]} - 1)); then
		mapfile -t COMPREPLY < <(compgen -f -- "$2")
	else
		mapfile -t COMPREPLY < <(compgen -d -- "$2"
			compgen -c -- "$2" | sort -u)
	fi
}

# $1: mpirun as it was typed; $2: what bash is going to replace.
_madmpi_mpirun() {
	local answer before word
	local -a words numbers

	COMPREPLY=()
	_madmpi_words
	if ! answer=$("$1" --complete "${words[@]:1}" 2>/dev/null); then
		compopt -o default # it is of another MPI
		return 0
	fi
	case $answer in
	:command*)
		_madmpi_program $((${answer#:command } + 1)) "$2"
		;;
	:files)
		compopt -o filenames
		mapfile -t COMPREPLY < <(compgen -f -- "$2")
		;;
	:directories)
		compopt -o filenames
		mapfile -t COMPREPLY < <(compgen -d -- "$2")
		;;
	:variables)
		mapfile -t COMPREPLY < <(compgen -e -- "$2")
		;;
	*)
		before=${words[-1]%"$2"}
		while IFS=$'\t' read -r word _; do
			[[ -z $word ]] || COMPREPLY+=("${word#"$before"}")
		done <<<"$answer"
		;;
	esac
}

complete -F _madmpi_mpirun mpirun mpiexec mpirun.madmpi mpiexec.madmpi
