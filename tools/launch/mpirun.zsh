#compdef mpirun mpiexec mpirun.madmpi mpiexec.madmpi
# Completion of mpirun and mpiexec in zsh. The mpirun of the command line is
# asked, so that whatever it has is offered: see complete.c.
local answer line
local -a found

answer=$(${~${(Q)words[1]}} --complete "${(@Q)words[2,CURRENT-1]}" \
	"$PREFIX" 2>/dev/null) || answer=:another
case $answer in
:another) # it is of another MPI
	_default
	;;
:command*)
	repeat $((${answer#:command } + 1)); do
		shift words
		((CURRENT--))
	done
	_normal
	;;
:files)
	compset -P '*='
	_files
	;;
:directories)
	compset -P '*[=:]'
	_directories
	;;
:variables)
	_parameters -g '*export*'
	;;
?*)
	for line in "${(@f)answer}"; do
		found+=("${${line%%$'\t'*}//:/\\:}:${line#*$'\t'}")
	done
	_describe 'mpirun' found
	;;
*)
	return 1
	;;
esac
